//! The functions on large objects (lo_create and similar ones, loread, lowrite), by pg_proc.prosrc.

#![expect(clippy::disallowed_methods, reason = "lo_import and lo_export name server-side files")]

use std::fs::File;
use std::io::{Read, Write};

use melba_catalog::default_privileges::initial_acl;
use melba_catalog::privileges::{AclKind, RoleUse, parse_privileges};
use melba_catalog::{Acl, ObjectAddress, ObjectChange, acl, classes};
use melba_largeobject::{Descriptor, EXTENT_BYTES, LargeObjectAccess, Sight, Trees, method_of_setting};
use melba_types::{Datum, DbError, Oid, Result, bail, err};

use super::context::StatementContext;
use super::created_file;
use super::server_files;

/// Bits of a mode.
const INV_WRITE: i32 = 0x20000;
const INV_READ: i32 = 0x40000;
/// The longest bytea.
const BYTEA_BYTES_MAX: i64 = 0x3fff_ffff - 4;
/// Server-side files are copied in pieces of this size.
const FILE_PIECE_BYTES: usize = 4 * EXTENT_BYTES;

/// Whether a function, by its prosrc, is one of this module: those touch nothing else, so that FunctionCall messages need no
/// plan for them.
pub fn is_large_object_function(source: &str) -> bool {
    source.starts_with("be_lo")
}

pub fn call_large_object(context: &StatementContext, source: &str, args: &[Datum]) -> Result<Datum> {
    match source {
        "be_lo_open" => lo_open(context, Oid(args[0].as_oid()), args[1].as_i32()),
        "be_lo_close" => with_objects(context, |lo| lo.objects.close(args[0].as_i32())).map(|()| Datum::Int4(0)),
        "be_loread" => {
            let length = usize::try_from(args[1].as_i32()).unwrap_or(0);
            with_objects(context, |lo| lo.read_descriptor(args[0].as_i32(), length)).map(Datum::bytes)
        }
        "be_lowrite" => lo_write(context, args[0].as_i32(), args[1].as_bytes()),
        "be_lo_lseek" | "be_lo_lseek64" => {
            let wide = source == "be_lo_lseek64";
            let offset = if wide { args[1].as_i64() } else { args[1].as_i32().into() };
            lo_seek(context, args[0].as_i32(), offset, args[2].as_i32(), wide)
        }
        "be_lo_tell" | "be_lo_tell64" => {
            let number = args[0].as_i32();
            let position = with_objects(context, |lo| Ok(lo.objects.descriptor(number)?.position))?;
            narrow(position, source == "be_lo_tell64", "lo_tell", number)
        }
        "be_lo_creat" => lo_create(context, "lo_creat()", Oid::INVALID, &[]),
        "be_lo_create" => lo_create(context, "lo_create()", Oid(args[0].as_oid()), &[]),
        "be_lo_from_bytea" => lo_create(context, "lo_from_bytea()", Oid(args[0].as_oid()), args[1].as_bytes()),
        "be_lo_unlink" => lo_unlink(context, Oid(args[0].as_oid())),
        "be_lo_truncate" => lo_truncate(context, "lo_truncate()", args[0].as_i32(), args[1].as_i32().into()),
        "be_lo_truncate64" => lo_truncate(context, "lo_truncate64()", args[0].as_i32(), args[1].as_i64()),
        "be_lo_get" => lo_get(context, Oid(args[0].as_oid()), 0, None),
        "be_lo_get_fragment" => {
            if args[2].as_i32() < 0 {
                bail!(INVALID_PARAMETER_VALUE, "requested length cannot be negative");
            }
            lo_get(context, Oid(args[0].as_oid()), args[1].as_i64(), Some(args[2].as_i32()))
        }
        "be_lo_put" => lo_put(context, Oid(args[0].as_oid()), args[1].as_i64(), args[2].as_bytes()),
        "be_lo_import" => lo_import(context, args[0].as_str(), Oid::INVALID),
        "be_lo_import_with_oid" => lo_import(context, args[0].as_str(), Oid(args[1].as_oid())),
        "be_lo_export" => lo_export(context, Oid(args[0].as_oid()), args[1].as_str()),
        _ => Err(DbError::unsupported(format!("function {source}"))),
    }
}

/// Runs `f` with the transaction's large objects.
pub(super) fn with_objects<T>(context: &StatementContext, f: impl FnOnce(&mut LargeObjectAccess<'_>) -> Result<T>) -> Result<T> {
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
    let mut objects = tx.large_objects.lock();
    let (trees, method) = objects.target().unwrap_or_else(|| {
        let setting = method_of_setting(context.session.settings.lock().get("default_toast_compression").as_text());
        (Trees::of(&context.catalog), setting)
    });
    f(&mut LargeObjectAccess::new(&mut objects, &tx.engine, trees, method))
}

fn refuse_read_only(context: &StatementContext, function: &str) -> Result<()> {
    if context.session.settings.lock().get("transaction_read_only").as_bool() {
        bail!(READ_ONLY_SQL_TRANSACTION, "cannot execute {function} in a read-only transaction");
    }
    Ok(())
}

/// Before version 9.0 there were no privileges on large objects.
fn compatible_privileges(context: &StatementContext) -> bool {
    context.session.settings.lock().get("lo_compat_privileges").as_bool()
}

/// The state for functions that only read.
fn snapshot(context: &StatementContext) -> Result<Sight> {
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
    Ok(Sight::Snapshot(tx.engine.active_view()))
}

/// Whether there is a large object with this OID.
pub(super) fn large_object_exists(context: &StatementContext, oid: Oid) -> Result<bool> {
    let sight = snapshot(context)?;
    with_objects(context, |lo| Ok(lo.metadata(sight, oid)?.is_some()))
}

/// A large object's privilege list.
pub(super) fn large_object_acl(context: &StatementContext, oid: Oid) -> Result<Acl> {
    let sight = snapshot(context)?;
    with_objects(context, |lo| Ok(lo.metadata(sight, oid)?.and_then(|metadata| metadata.acl)))
}

/// Checks that the object exists and that the user has the privileges in `mask`; returns its size.
fn open_checked(
    context: &StatementContext,
    lo: &mut LargeObjectAccess<'_>,
    sight: Sight,
    oid: Oid,
    masks: &[u64],
) -> Result<i64> {
    let metadata = lo.existing(sight, oid)?;
    let may =
        |mask: &u64| context.catalog.has_privileges(context.user.oid, AclKind::LargeObject, metadata.owner, &metadata.acl, *mask);
    if !context.user.superuser && !masks.iter().all(may) && !compatible_privileges(context) {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied for large object {oid}");
    }
    Ok(metadata.size)
}

fn lo_open(context: &StatementContext, oid: Oid, mode: i32) -> Result<Datum> {
    let writable = mode & INV_WRITE != 0;
    if writable {
        refuse_read_only(context, "lo_open(INV_WRITE)")?;
    }
    if mode & (INV_WRITE | INV_READ) == 0 {
        bail!(INVALID_PARAMETER_VALUE, "invalid flags for opening a large object: {mode}");
    }
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
    let number = with_objects(context, |lo| {
        if writable {
            open_checked(context, lo, Sight::Newest, oid, &[acl::SELECT, acl::UPDATE])?;
            return Ok(lo.objects.open(oid, None));
        }
        let view = tx.engine.active_view();
        open_checked(context, lo, Sight::Snapshot(view), oid, &[acl::SELECT])?;
        let pin = tx.engine.pin_view(view);
        Ok(lo.objects.open(oid, Some((view, pin))))
    })?;
    Ok(Datum::Int4(number))
}

fn lo_write(context: &StatementContext, number: i32, data: &[u8]) -> Result<Datum> {
    refuse_read_only(context, "lowrite()")?;
    with_objects(context, |lo| {
        let (oid, position) = writable(lo, number)?;
        lo.write(oid, position, data)?;
        lo.objects.descriptor(number)?.position += data.len() as i64;
        Ok(Datum::Int4(data.len() as i32))
    })
}

fn lo_seek(context: &StatementContext, number: i32, offset: i64, whence: i32, wide: bool) -> Result<Datum> {
    let target = with_objects(context, |lo| {
        let descriptor = lo.objects.descriptor(number)?;
        let (oid, position, sight) = (descriptor.oid, descriptor.position, descriptor.sight());
        let size = || Ok(lo.metadata(sight, oid)?.map_or(0, |m| m.size));
        Descriptor::seek(position, offset, whence, size)
    })?;
    let result = narrow(target, wide, "lo_lseek", number)?;
    with_objects(context, |lo| {
        lo.objects.descriptor(number)?.position = target;
        Ok(result)
    })
}

fn lo_create(context: &StatementContext, function: &str, oid: Oid, data: &[u8]) -> Result<Datum> {
    refuse_read_only(context, function)?;
    with_objects(context, |lo| {
        let oid = create(context, lo, oid)?;
        lo.write(oid, 0, data)?;
        Ok(Datum::Oid(oid.0))
    })
}

fn create(context: &StatementContext, lo: &mut LargeObjectAccess<'_>, oid: Oid) -> Result<Oid> {
    let acl = initial_acl(&context.catalog, AclKind::LargeObject, context.user.oid, Oid::INVALID);
    lo.create(oid, context.user.oid, acl, || context.catalog.allocate_oid())
}

fn lo_unlink(context: &StatementContext, oid: Oid) -> Result<Datum> {
    refuse_read_only(context, "lo_unlink()")?;
    with_objects(context, |lo| {
        // A user who may not remove it does not even lock it.
        if !context.user.superuser {
            let metadata = lo.existing(Sight::Newest, oid)?;
            let owner = context.catalog.has_role(context.user.oid, metadata.owner, RoleUse::Inherit);
            if !owner && !compatible_privileges(context) {
                bail!(INSUFFICIENT_PRIVILEGE, "must be owner of large object {oid}");
            }
        }
        lo.unlink(oid)
    })?;
    let address = ObjectAddress { class: classes::PG_LARGEOBJECT, object: oid, sub: 0 };
    if let Some(tx) = &context.tx
        && tx.catalog().description(address).is_some()
    {
        tx.change(ObjectChange::RemoveDescription(address));
    }
    Ok(Datum::Int4(1))
}

fn lo_truncate(context: &StatementContext, function: &str, number: i32, length: i64) -> Result<Datum> {
    refuse_read_only(context, function)?;
    with_objects(context, |lo| {
        let (oid, _) = writable(lo, number)?;
        lo.truncate(oid, length)?;
        Ok(Datum::Int4(0))
    })
}

fn lo_get(context: &StatementContext, oid: Oid, offset: i64, length: Option<i32>) -> Result<Datum> {
    let sight = snapshot(context)?;
    with_objects(context, |lo| {
        let size = open_checked(context, lo, sight, oid, &[acl::SELECT])?;
        let left = (size - offset.min(size)).min(length.map_or(i64::MAX, i64::from));
        if left > BYTEA_BYTES_MAX {
            bail!(PROGRAM_LIMIT_EXCEEDED, "large object read request is too large");
        }
        // The error of a seek to that place.
        Descriptor::seek(0, offset, 0, || Ok(0))?;
        lo.read(sight, oid, size, offset, left as usize).map(Datum::bytes)
    })
}

fn lo_put(context: &StatementContext, oid: Oid, offset: i64, data: &[u8]) -> Result<Datum> {
    refuse_read_only(context, "lo_put()")?;
    with_objects(context, |lo| {
        open_checked(context, lo, Sight::Newest, oid, &[acl::SELECT, acl::UPDATE])?;
        Descriptor::seek(0, offset, 0, || Ok(0))?;
        lo.write(oid, offset, data)
    })?;
    Ok(Datum::text(""))
}

fn lo_import(context: &StatementContext, name: &str, oid: Oid) -> Result<Datum> {
    refuse_read_only(context, "lo_import()")?;
    let failed = |doing: &str, e| server_files::error(&format!("could not {doing} server file \"{name}\""), &e);
    let mut file = File::open(server_files::resolve(context, name)).map_err(|e| failed("open", e))?;
    let oid = with_objects(context, |lo| create(context, lo, oid))?;
    let mut piece = vec![0; FILE_PIECE_BYTES];
    let mut offset = 0;
    loop {
        context.session.interrupt.check()?;
        let length = file.read(&mut piece).map_err(|e| failed("read", e))?;
        if length == 0 {
            return Ok(Datum::Oid(oid.0));
        }
        with_objects(context, |lo| lo.write(oid, offset, &piece[..length]))?;
        offset += length as i64;
    }
}

fn lo_export(context: &StatementContext, oid: Oid, name: &str) -> Result<Datum> {
    let sight = snapshot(context)?;
    let size = with_objects(context, |lo| open_checked(context, lo, sight, oid, &[acl::SELECT]))?;
    let failed = |doing: &str, e| server_files::error(&format!("could not {doing} server file \"{name}\""), &e);
    let path = server_files::resolve(context, name);
    let mut file = created_file::create(&path).map_err(|e| failed("create", e))?;
    let mut offset = 0;
    while offset < size {
        context.session.interrupt.check()?;
        let piece = with_objects(context, |lo| lo.read(sight, oid, size, offset, FILE_PIECE_BYTES))?;
        file.write_all(&piece).map_err(|e| failed("write", e))?;
        offset += piece.len() as i64;
    }
    Ok(Datum::Int4(1))
}

/// has_largeobject_privilege: NULL when there is no such object.
pub(super) fn has_large_object_privilege(context: &StatementContext, args: &[Datum]) -> Result<Datum> {
    let (role, oid, text) = match args {
        [oid, text] => (context.user.oid, oid, text),
        [Datum::Text(name), oid, text] if &**name == "public" => (Oid::INVALID, oid, text),
        [Datum::Text(name), oid, text] => {
            let role = context.catalog.role_by_name(name).map(|r| r.oid);
            (role.ok_or_else(|| err!(UNDEFINED_OBJECT, "role \"{name}\" does not exist"))?, oid, text)
        }
        [role, oid, text] => (Oid(role.as_oid()), oid, text),
        _ => return Err(DbError::internal("has_largeobject_privilege with other arguments")),
    };
    let masks = parse_privileges(AclKind::LargeObject, text.as_str())?;
    let sight = snapshot(context)?;
    let Some(metadata) = with_objects(context, |lo| lo.metadata(sight, Oid(oid.as_oid())))? else { return Ok(Datum::Null) };
    let has = |mask: &u64| context.catalog.has_privileges(role, AclKind::LargeObject, metadata.owner, &metadata.acl, *mask);
    Ok(Datum::Bool(compatible_privileges(context) || masks.iter().any(has)))
}

/// The object and position of a descriptor that was opened for writing.
fn writable(lo: &mut LargeObjectAccess<'_>, number: i32) -> Result<(Oid, i64)> {
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
