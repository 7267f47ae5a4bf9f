"""Makes the wheel: the package `melba` with the program that MELBA names. Needs nothing but Python (PEP 517).

    MELBA=target/release/melba pip wheel --no-deps --wheel-dir target/packages packaging/python
"""

import base64
import hashlib
import os
import platform
import re
import subprocess
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUMMARY = "PostgreSQL-compatible database in one binary, embedded: DB-API 2.0 on a directory, without a port"


def program():
    """The binary, stripped, and its version."""
    path = Path(os.environ.get("MELBA") or HERE.parents[1] / "target/release/melba")
    if not path.is_file():
        raise SystemExit(f"{path} is not there: set MELBA to the program, built by `make build`")
    version = subprocess.run([path, "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    return path, version


def tag(path):
    """The platforms it runs on: the newest symbol of glibc that it uses decides."""
    symbols = subprocess.run(["readelf", "-V", path], check=True, capture_output=True, text=True).stdout
    newest = max(tuple(map(int, found)) for found in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols))
    return f"py3-none-manylinux_{newest[0]}_{newest[1]}_{platform.machine()}"


def metadata(version):
    return (
        f"Metadata-Version: 2.1\nName: melba\nVersion: {version}\nSummary: {SUMMARY}\nRequires-Python: >=3.9\n"
        "Requires-Dist: pg8000<2,>=1.31\nProvides-Extra: arrow\nRequires-Dist: pyarrow; extra == 'arrow'\n"
    )


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    path, version = program()
    info, name = f"melba-{version}.dist-info", f"melba-{version}-{tag(path)}.whl"
    wheel = f"Wheel-Version: 1.0\nGenerator: melba\nRoot-Is-Purelib: false\nTag: {tag(path)}\n"
    stripped = Path(wheel_directory) / f"{name}.program"
    subprocess.run(["strip", "--strip-unneeded", "-o", stripped, path], check=True)
    files = [(f"melba/{source.name}", source.read_bytes(), 0o644) for source in sorted((HERE / "melba").glob("*.py"))]
    files += [
        ("melba/bin/melba", stripped.read_bytes(), 0o755),
        (f"{info}/LICENSE", (HERE.parents[1] / "LICENSE").read_bytes(), 0o644),
        (f"{info}/METADATA", metadata(version).encode(), 0o644),
        (f"{info}/WHEEL", wheel.encode(), 0o644),
        (f"{info}/entry_points.txt", b"[console_scripts]\nmelba = melba.program:main\n", 0o644),
    ]
    stripped.unlink()
    record = ""
    for file, content, _ in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{file},sha256={digest},{len(content)}\n"
    files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644))
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content, mode in files:
            # The same bytes give the same wheel.
            entry = zipfile.ZipInfo(file, (2000, 1, 1, 0, 0, 0))
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return name
