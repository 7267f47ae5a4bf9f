//! The functions on large objects (lo_create and similar ones, loread, lowrite), by pg_proc.prosrc.

#![expect(clippy::disallowed_methods, reason = "lo_import and lo_export name server-side files")]

use std::fs::File;
use std::io::{Read, Write};

use melba_catalog::privileges::{AclKind, RoleUse, parse_privileges};
use melba_catalog::{ObjectAddress, ObjectChange, acl, classes};
use melba_types::{Datum, DbError, Oid, Result, bail, err};

use super::context::StatementContext;
use super::created_file;
use super::server_files;
use melba_largeobject::{Access, Descriptor, EXTENT_BYTES, Sight, Trees, method_of_setting};

/// Bits of a mode.
const INV_WRITE: i32 = 0x20000;
const INV_READ: i32 = 0x40000;
/// The longest bytea.
const BYTEA_BYTES_MAX: i64 = 0x3fff_ffff - 4;
/// Server-side files are copied in pieces of this size.
const FILE_PIECE_BYTES: usize = 4 * EXTENT_BYTES;

/// Whether a function, by its prosrc, is one of this module: those touch nothing else, so that FunctionCall messages need no
/// plan for them.
pub(super) fn is_large_object_function(source: &str) -> bool {
    source.starts_with("be_lo")
}

impl StatementContext {
    pub(super) fn call_large_object(&self, source: &str, args: &[Datum]) -> Result<Datum> {
        match source {
            "be_lo_open" => self.lo_open(Oid(args[0].as_oid()), args[1].as_i32()),
            "be_lo_close" => self.with_objects(|lo| lo.objects.close(args[0].as_i32())).map(|()| Datum::Int4(0)),
            "be_loread" => {
                let length = usize::try_from(args[1].as_i32()).unwrap_or(0);
                self.with_objects(|lo| lo.read_descriptor(args[0].as_i32(), length)).map(Datum::bytes)
            }
            "be_lowrite" => self.lo_write(args[0].as_i32(), args[1].as_bytes()),
            "be_lo_lseek" | "be_lo_lseek64" => {
                let wide = source == "be_lo_lseek64";
                let offset = if wide { args[1].as_i64() } else { args[1].as_i32().into() };
                self.lo_seek(args[0].as_i32(), offset, args[2].as_i32(), wide)
            }
            "be_lo_tell" | "be_lo_tell64" => {
                let number = args[0].as_i32();
                let position = self.with_objects(|lo| Ok(lo.objects.descriptor(number)?.position))?;
                narrow(position, source == "be_lo_tell64", "lo_tell", number)
            }
            "be_lo_creat" => self.lo_create("lo_creat()", Oid::INVALID, &[]),
            "be_lo_create" => self.lo_create("lo_create()", Oid(args[0].as_oid()), &[]),
            "be_lo_from_bytea" => self.lo_create("lo_from_bytea()", Oid(args[0].as_oid()), args[1].as_bytes()),
            "be_lo_unlink" => self.lo_unlink(Oid(args[0].as_oid())),
            "be_lo_truncate" => self.lo_truncate("lo_truncate()", args[0].as_i32(), args[1].as_i32().into()),
            "be_lo_truncate64" => self.lo_truncate("lo_truncate64()", args[0].as_i32(), args[1].as_i64()),
            "be_lo_get" => self.lo_get(Oid(args[0].as_oid()), 0, None),
            "be_lo_get_fragment" => {
                if args[2].as_i32() < 0 {
                    bail!(INVALID_PARAMETER_VALUE, "requested length cannot be negative");
                }
                self.lo_get(Oid(args[0].as_oid()), args[1].as_i64(), Some(args[2].as_i32()))
            }
            "be_lo_put" => self.lo_put(Oid(args[0].as_oid()), args[1].as_i64(), args[2].as_bytes()),
            "be_lo_import" => self.lo_import(args[0].as_str(), Oid::INVALID),
            "be_lo_import_with_oid" => self.lo_import(args[0].as_str(), Oid(args[1].as_oid())),
            "be_lo_export" => self.lo_export(Oid(args[0].as_oid()), args[1].as_str()),
            _ => Err(DbError::unsupported(format!("function {source}"))),
        }
    }

    /// Runs `f` with the transaction's large objects.
    pub(super) fn with_objects<T>(&self, f: impl FnOnce(&mut Access<'_>) -> Result<T>) -> Result<T> {
        let tx = self.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
        let mut objects = tx.large_objects.lock();
        let (trees, method) = objects.target().unwrap_or_else(|| {
            let setting = method_of_setting(self.session.settings.lock().get("default_toast_compression").as_text());
            (Trees::of(&self.catalog), setting)
        });
        f(&mut Access::new(&mut objects, &tx.engine, trees, method))
    }

    fn refuse_read_only(&self, function: &str) -> Result<()> {
        if self.session.settings.lock().get("transaction_read_only").as_bool() {
            bail!(READ_ONLY_SQL_TRANSACTION, "cannot execute {function} in a read-only transaction");
        }
        Ok(())
    }

    /// Before version 9.0 there were no privileges on large objects.
    fn compatible_privileges(&self) -> bool {
        self.session.settings.lock().get("lo_compat_privileges").as_bool()
    }

    /// The state for functions that only read.
    fn snapshot(&self) -> Result<Sight> {
        let tx = self.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
        Ok(Sight::Snapshot(tx.engine.active_view()))
    }

    /// Checks that the object exists and that the user has the privileges in `mask`; returns its size.
    fn open_checked(&self, lo: &mut Access<'_>, sight: Sight, oid: Oid, masks: &[u64]) -> Result<i64> {
        let metadata = lo.existing(sight, oid)?;
        let may =
            |mask: &u64| self.catalog.has_privileges(self.user.oid, AclKind::LargeObject, metadata.owner, &metadata.acl, *mask);
        if !self.user.superuser && !masks.iter().all(may) && !self.compatible_privileges() {
            bail!(INSUFFICIENT_PRIVILEGE, "permission denied for large object {oid}");
        }
        Ok(metadata.size)
    }

    fn lo_open(&self, oid: Oid, mode: i32) -> Result<Datum> {
        let writable = mode & INV_WRITE != 0;
        if writable {
            self.refuse_read_only("lo_open(INV_WRITE)")?;
        }
        if mode & (INV_WRITE | INV_READ) == 0 {
            bail!(INVALID_PARAMETER_VALUE, "invalid flags for opening a large object: {mode}");
        }
        let tx = self.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
        let number = self.with_objects(|lo| {
            if writable {
                self.open_checked(lo, Sight::Newest, oid, &[acl::SELECT, acl::UPDATE])?;
                return Ok(lo.objects.open(oid, None));
            }
            let view = tx.engine.active_view();
            self.open_checked(lo, Sight::Snapshot(view), oid, &[acl::SELECT])?;
            let pin = tx.engine.pin_view(view);
            Ok(lo.objects.open(oid, Some((view, pin))))
        })?;
        Ok(Datum::Int4(number))
    }

    fn lo_write(&self, number: i32, data: &[u8]) -> Result<Datum> {
        self.refuse_read_only("lowrite()")?;
        self.with_objects(|lo| {
            let (oid, position) = writable(lo, number)?;
            lo.write(oid, position, data)?;
            lo.objects.descriptor(number)?.position += data.len() as i64;
            Ok(Datum::Int4(data.len() as i32))
        })
    }

    fn lo_seek(&self, number: i32, offset: i64, whence: i32, wide: bool) -> Result<Datum> {
        let target = self.with_objects(|lo| {
            let descriptor = lo.objects.descriptor(number)?;
            let (oid, position, sight) = (descriptor.oid, descriptor.position, descriptor.sight());
            let size = || Ok(lo.metadata(sight, oid)?.map_or(0, |m| m.size));
            Descriptor::seek(position, offset, whence, size)
        })?;
        let result = narrow(target, wide, "lo_lseek", number)?;
        self.with_objects(|lo| {
            lo.objects.descriptor(number)?.position = target;
            Ok(result)
        })
    }

    fn lo_create(&self, function: &str, oid: Oid, data: &[u8]) -> Result<Datum> {
        self.refuse_read_only(function)?;
        self.with_objects(|lo| {
            let oid = self.create(lo, oid)?;
            lo.write(oid, 0, data)?;
            Ok(Datum::Oid(oid.0))
        })
    }

    fn create(&self, lo: &mut Access<'_>, oid: Oid) -> Result<Oid> {
        let acl = self.catalog.initial_acl(AclKind::LargeObject, self.user.oid, Oid::INVALID);
        lo.create(oid, self.user.oid, acl, || self.catalog.allocate_oid())
    }

    fn lo_unlink(&self, oid: Oid) -> Result<Datum> {
        self.refuse_read_only("lo_unlink()")?;
        self.with_objects(|lo| {
            // A user who may not remove it does not even lock it.
            if !self.user.superuser {
                let metadata = lo.existing(Sight::Newest, oid)?;
                let owner = self.catalog.has_role(self.user.oid, metadata.owner, RoleUse::Inherit);
                if !owner && !self.compatible_privileges() {
                    bail!(INSUFFICIENT_PRIVILEGE, "must be owner of large object {oid}");
                }
            }
            lo.unlink(oid)
        })?;
        let address = ObjectAddress { class: classes::PG_LARGEOBJECT, object: oid, sub: 0 };
        if let Some(tx) = &self.tx
            && tx.catalog().description(address).is_some()
        {
            tx.change(ObjectChange::RemoveDescription(address));
        }
        Ok(Datum::Int4(1))
    }

    fn lo_truncate(&self, function: &str, number: i32, length: i64) -> Result<Datum> {
        self.refuse_read_only(function)?;
        self.with_objects(|lo| {
            let (oid, _) = writable(lo, number)?;
            lo.truncate(oid, length)?;
            Ok(Datum::Int4(0))
        })
    }

    fn lo_get(&self, oid: Oid, offset: i64, length: Option<i32>) -> Result<Datum> {
        let sight = self.snapshot()?;
        self.with_objects(|lo| {
            let size = self.open_checked(lo, sight, oid, &[acl::SELECT])?;
            let left = (size - offset.min(size)).min(length.map_or(i64::MAX, i64::from));
            if left > BYTEA_BYTES_MAX {
                bail!(PROGRAM_LIMIT_EXCEEDED, "large object read request is too large");
            }
            // The error of a seek to that place.
            Descriptor::seek(0, offset, 0, || Ok(0))?;
            lo.read(sight, oid, size, offset, left as usize).map(Datum::bytes)
        })
    }

    fn lo_put(&self, oid: Oid, offset: i64, data: &[u8]) -> Result<Datum> {
        self.refuse_read_only("lo_put()")?;
        self.with_objects(|lo| {
            self.open_checked(lo, Sight::Newest, oid, &[acl::SELECT, acl::UPDATE])?;
            Descriptor::seek(0, offset, 0, || Ok(0))?;
            lo.write(oid, offset, data)
        })?;
        Ok(Datum::text(""))
    }

    fn lo_import(&self, name: &str, oid: Oid) -> Result<Datum> {
        self.refuse_read_only("lo_import()")?;
        let failed = |doing: &str, e| server_files::error(&format!("could not {doing} server file \"{name}\""), &e);
        let mut file = File::open(server_files::resolve(self, name)).map_err(|e| failed("open", e))?;
        let oid = self.with_objects(|lo| self.create(lo, oid))?;
        let mut piece = vec![0; FILE_PIECE_BYTES];
        let mut offset = 0;
        loop {
            self.session.interrupt.check()?;
            let length = file.read(&mut piece).map_err(|e| failed("read", e))?;
            if length == 0 {
                return Ok(Datum::Oid(oid.0));
            }
            self.with_objects(|lo| lo.write(oid, offset, &piece[..length]))?;
            offset += length as i64;
        }
    }

    fn lo_export(&self, oid: Oid, name: &str) -> Result<Datum> {
        let sight = self.snapshot()?;
        let size = self.with_objects(|lo| self.open_checked(lo, sight, oid, &[acl::SELECT]))?;
        let failed = |doing: &str, e| server_files::error(&format!("could not {doing} server file \"{name}\""), &e);
        let path = server_files::resolve(self, name);
        let mut file = created_file::create(&path).map_err(|e| failed("create", e))?;
        let mut offset = 0;
        while offset < size {
            self.session.interrupt.check()?;
            let piece = self.with_objects(|lo| lo.read(sight, oid, size, offset, FILE_PIECE_BYTES))?;
            file.write_all(&piece).map_err(|e| failed("write", e))?;
            offset += piece.len() as i64;
        }
        Ok(Datum::Int4(1))
    }

    /// has_largeobject_privilege: NULL when there is no such object.
    pub(super) fn has_large_object_privilege(&self, args: &[Datum]) -> Result<Datum> {
        let (role, oid, text) = match args {
            [oid, text] => (self.user.oid, oid, text),
            [Datum::Text(name), oid, text] if &**name == "public" => (Oid::INVALID, oid, text),
            [Datum::Text(name), oid, text] => {
                let role = self.catalog.role_by_name(name).map(|r| r.oid);
                (role.ok_or_else(|| err!(UNDEFINED_OBJECT, "role \"{name}\" does not exist"))?, oid, text)
            }
            [role, oid, text] => (Oid(role.as_oid()), oid, text),
            _ => return Err(DbError::internal("has_largeobject_privilege with other arguments")),
        };
        let masks = parse_privileges(AclKind::LargeObject, text.as_str())?;
        let sight = self.snapshot()?;
        let Some(metadata) = self.with_objects(|lo| lo.metadata(sight, Oid(oid.as_oid())))? else { return Ok(Datum::Null) };
        let has = |mask: &u64| self.catalog.has_privileges(role, AclKind::LargeObject, metadata.owner, &metadata.acl, *mask);
        Ok(Datum::Bool(self.compatible_privileges() || masks.iter().any(has)))
    }
}

/// The object and position of a descriptor that was opened for writing.
fn writable(lo: &mut Access<'_>, number: i32) -> Result<(Oid, i64)> {
    let descriptor = lo.objects.descriptor(number)?;
    if !descriptor.writable {
        bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "large object descriptor {number} was not opened for writing");
    }
    Ok((descriptor.oid, descriptor.position))
}

/// A position as the result of a function; the older functions return 32 bits.
fn narrow(position: i64, wide: bool, function: &str, number: i32) -> Result<Datum> {
    if wide {
        return Ok(Datum::Int8(position));
    }
    let narrow = i32::try_from(position)
        .map_err(|_| err!(NUMERIC_VALUE_OUT_OF_RANGE, "{function} result out of range for large-object descriptor {number}"))?;
    Ok(Datum::Int4(narrow))
}
