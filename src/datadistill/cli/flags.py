"""How the fields of a command become flags: one rule for all commands.

The command line is described by dataclasses; tyro parses it. This module says what the flags look
like: ``--x`` and ``--no-x`` for yes/no settings, help from the string below each field, and no
``None`` in the help.
"""

import ast
import dataclasses
import functools
import inspect
import itertools
import textwrap
import types
from collections.abc import Collection
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import tyro
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from .console import Switch

REGISTRY = ConstructorRegistry()
METAVARS = {
    "artefact": "ARTEFACT",
    "data": "NAME",
    "model": "NAME",
    "model_args": "[NAME=VALUE ...]",
    "trained": "[LAYER ...]",
    "architectures": "[NAME ...]",
    "objective": "NAME",
    "initialization": "NAME",
    "update_rule": "NAME",
    "adjoint": "NAME",
    "parametrisation": "NAME",
    "time_budget": "TIME",
}
"""What help calls the value of a flag, where its type says little."""
HIDDEN = ("plans",)
"""Settings that runs write and nobody sets."""


@REGISTRY.struct_rule
def _command(info: StructTypeInfo) -> StructConstructorSpec | None:
    """The flags of any dataclass, those of the class itself before those it inherits."""
    if not dataclasses.is_dataclass(info.type):
        return None
    order = {name: place for place, name in enumerate(_names_by_class(info.type))}
    found = flags(info.type, info.default)
    return StructConstructorSpec(info.type, tuple(sorted(found, key=lambda f: order[f.name])))


def flags(cls: type, values: object, skip: Collection[str] = ()) -> list[StructFieldSpec]:
    """The flags of a dataclass.

    Args:
        cls: The dataclass.
        values: An instance that holds the defaults; those of the class if it is none.
        skip: Names of fields to leave out.
    """
    hints = get_type_hints(cls, include_extras=True)
    return [
        _flag(field.name, hints[field.name], _default(field, cls, values), cls)
        for field in dataclasses.fields(cls)
        if field.name not in skip
    ]


def _flag(name: str, hint: Any, default: Any, cls: type) -> StructFieldSpec:
    found: list[Any] = [tyro.conf.arg(metavar=_metavar(name, hint), help_behavior_hint=_shown)]
    if name in HIDDEN:
        found.append(tyro.conf.Suppress)
    if set(get_args(hint)) == {bool, types.NoneType}:  # a pair, as of any yes/no setting
        found.append(tyro.conf.DisallowNone)
    # What a field itself is annotated with comes last, and so takes precedence.
    plain, *own = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    annotated: Any = Annotated
    return StructFieldSpec(
        name, annotated[(plain, *found, *own)], default, functools.partial(_help, cls, name)
    )


def _shown(default: str) -> str:
    """A default in the help; where there is none, or it is no, the flag's text says enough."""
    if default in ("None", "False", ""):
        return ""
    return f"(default: {'yes' if default == 'True' else default})"


def _metavar(name: str, hint: Any) -> str | None:
    """What help calls the value of a flag; None for yes/no settings, and what is no flag."""
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    plain = next(part for part in _parts(plain) if part is not types.NoneType)
    if plain is bool:
        return None
    spec = ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(plain, set()))
    if not isinstance(spec, PrimitiveConstructorSpec):
        return None
    return spec.metavar if get_origin(plain) is Literal else METAVARS.get(name, spec.metavar)


def _default(field: "dataclasses.Field[Any]", cls: type, values: object) -> Any:
    if isinstance(values, cls):
        return getattr(values, field.name)
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return tyro.MISSING_NONPROP if field.default is dataclasses.MISSING else field.default


def _names_by_class(cls: type) -> list[str]:
    """The names of a dataclass's fields, its own first, then class by class those inherited."""
    names = (name for base in _dataclasses_of(cls) for name in inspect.get_annotations(base))
    return list(dict.fromkeys(names))


def _dataclasses_of(cls: type) -> list[type]:
    """A dataclass, and those that it inherits from."""
    return [base for base in cls.__mro__ if dataclasses.is_dataclass(base)]


def _help(cls: type, name: str) -> str:
    return field_help(cls).get(name, "")


@functools.cache
def field_help(cls: type) -> dict[str, str]:
    """The string below each field of a dataclass and of those that it inherits from."""
    found: dict[str, str] = {}
    for base in reversed(_dataclasses_of(cls)):
        tree = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(tree, ast.ClassDef)
        for field, below in itertools.pairwise(tree.body):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    found[name] = " ".join(text.split())
                case _:
                    pass
    return found


def description(command: type, width: int) -> str:
    """What help says of a command: its documentation, filled to a width.

    All lines but the first are indented, since tyro joins those that begin with a letter.
    """
    summary, *paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    filled = [
        textwrap.indent(text, "  ")
        if "\n    " in text  # examples, one a line
        else textwrap.fill(text, width, initial_indent="  ", subsequent_indent="  ")
        for text in paragraphs
    ]
    return "\n".join([summary, *filled])


def yes_no(cls: type) -> dict[str, bool]:
    """The flags of a dataclass's yes/no settings, and whether each has a ``--no-`` too."""
    return {
        f"--{name.replace('_', '-')}": hint != Switch
        for name, hint in get_type_hints(cls, include_extras=True).items()
        if hint == Switch or {*_parts(hint)} - {types.NoneType} == {bool}
    }


def _parts(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
