//! Index access methods: operator families and classes and their members, all built in or from extensions. Users create none.

use hashbrown::HashMap;
use melba_types::Oid;

use crate::seed::seed;

/// pg_opfamily.
#[derive(Clone, Debug)]
pub struct OperatorFamily {
    pub oid: Oid,
    pub name: &'static str,
    pub method: Oid,
}

/// pg_opclass.
#[derive(Clone, Debug)]
pub struct OperatorClass {
    pub oid: Oid,
    pub name: &'static str,
    pub method: Oid,
    pub family: Oid,
    pub input_type: Oid,
    pub is_default: bool,
    /// Type stored in the index when it is not `input_type`, else 0.
    pub key_type: Oid,
}

/// pg_amop: an operator's place in an operator family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorFamilyMember {
    pub family: Oid,
    pub method: Oid,
    pub left: Oid,
    pub right: Oid,
    /// B-tree: 1 `<`, 2 `<=`, 3 `=`, 4 `>=`, 5 `>`; hash: 1 `=`.
    pub strategy: i16,
    pub operator: Oid,
    /// An ordering operator (`ORDER BY x <-> y`) rather than a search operator.
    pub ordering: bool,
}

/// The operator classes of all access methods.
#[derive(Debug, Default)]
pub struct AccessMethods {
    methods: Vec<(Oid, &'static str)>,
    families: HashMap<Oid, OperatorFamily>,
    classes: HashMap<Oid, OperatorClass>,
    /// By method and input type.
    defaults: HashMap<(Oid, Oid), Oid>,
    members_of_operator: HashMap<Oid, Vec<OperatorFamilyMember>>,
    operators: HashMap<(Oid, Oid, Oid, i16), Oid>,
    functions: HashMap<(Oid, Oid, Oid, i16), Oid>,
}

impl AccessMethods {
    pub(super) fn load() -> AccessMethods {
        let mut all = AccessMethods {
            methods: seed!("pg_am").rows().map(|r| (r.oid("oid"), r.str("amname"))).collect(),
            ..AccessMethods::default()
        };
        all.methods.push((crate::classes::MEMORY, "memory"));
        for r in seed!("pg_opfamily").rows().chain(seed!("extension/pg_opfamily").rows()) {
            let family = OperatorFamily { oid: r.oid("oid"), method: r.oid("opfmethod"), name: r.str("opfname") };
            all.families.insert(family.oid, family);
        }
        for r in seed!("pg_opclass").rows().chain(seed!("extension/pg_opclass").rows()) {
            let class = OperatorClass {
                oid: r.oid("oid"),
                method: r.oid("opcmethod"),
                name: r.str("opcname"),
                family: r.oid("opcfamily"),
                input_type: r.oid("opcintype"),
                is_default: r.bool("opcdefault"),
                key_type: r.oid("opckeytype"),
            };
            if class.is_default {
                all.defaults.insert((class.method, class.input_type), class.oid);
            }
            all.classes.insert(class.oid, class);
        }
        for r in seed!("pg_amop").rows().chain(seed!("extension/pg_amop").rows()) {
            let member = OperatorFamilyMember {
                family: r.oid("amopfamily"),
                left: r.oid("amoplefttype"),
                right: r.oid("amoprighttype"),
                strategy: r.number("amopstrategy"),
                ordering: r.char("amoppurpose") == b'o',
                operator: r.oid("amopopr"),
                method: r.oid("amopmethod"),
            };
            all.members_of_operator.entry(member.operator).or_default().push(member);
            all.operators.insert((member.family, member.left, member.right, member.strategy), member.operator);
        }
        for r in seed!("pg_amproc").rows().chain(seed!("extension/pg_amproc").rows()) {
            let key = (r.oid("amprocfamily"), r.oid("amproclefttype"), r.oid("amprocrighttype"), r.number("amprocnum"));
            all.functions.insert(key, r.oid("amproc"));
        }
        all
    }

    pub fn method_by_name(&self, name: &str) -> Option<Oid> {
        self.methods.iter().find(|(_, n)| *n == name).map(|(oid, _)| *oid)
    }

    pub fn method_name(&self, oid: Oid) -> Option<&'static str> {
        self.methods.iter().find(|(o, _)| *o == oid).map(|(_, n)| *n)
    }

    pub fn family(&self, oid: Oid) -> Option<&OperatorFamily> {
        self.families.get(&oid)
    }

    pub fn class(&self, oid: Oid) -> Option<&OperatorClass> {
        self.classes.get(&oid)
    }

    /// The class of a method with a name (`text_pattern_ops`).
    pub fn class_by_name(&self, method: Oid, name: &str) -> Option<&OperatorClass> {
        self.classes.values().find(|c| c.method == method && c.name == name)
    }

    /// The default class of a method for exactly this type.
    pub fn default_class(&self, method: Oid, input_type: Oid) -> Option<&OperatorClass> {
        self.classes.get(self.defaults.get(&(method, input_type))?)
    }

    /// Where an operator stands in the families of all methods.
    pub fn members(&self, operator: Oid) -> &[OperatorFamilyMember] {
        self.members_of_operator.get(&operator).map_or(&[], |v| v)
    }

    /// The operator of a family with a strategy number for two operand types.
    pub fn operator(&self, family: Oid, left: Oid, right: Oid, strategy: i16) -> Option<Oid> {
        self.operators.get(&(family, left, right, strategy)).copied()
    }

    /// The support function of a family (B-tree: 1 compares; hash: 1 hashes, 2 hashes with a seed).
    pub fn function(&self, family: Oid, left: Oid, right: Oid, number: i16) -> Option<Oid> {
        self.functions.get(&(family, left, right, number)).copied()
    }

    /// The strategy of an operator in a family, when it is a search operator of it.
    pub fn strategy(&self, operator: Oid, family: Oid) -> Option<i16> {
        self.members(operator).iter().find(|m| m.family == family && !m.ordering).map(|m| m.strategy)
    }
}
