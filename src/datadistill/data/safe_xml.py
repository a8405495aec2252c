"""Reading XML of unknown origin."""

from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, TreeBuilder
from xml.parsers import expat

from ..errors import DataError

MOST_BYTES = 2**20


def read_xml(path: Path) -> Element:
    """Reads a small XML file; one that declares entities or a document type is refused.

    Entities can refer to each other so that a few lines grow to gigabytes, or to other files.
    """

    def refuse(*_: object) -> None:
        raise ParseError("it declares a document type or entities")

    builder = TreeBuilder()
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ParseError("it is too long")
        parser.Parse(content, True)
        return builder.close()
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror}.", "Put the original file there."
        ) from error
    except (ParseError, expat.ExpatError, ValueError, LookupError) as error:
        raise DataError(
            f"{path} is no XML that can be read: {error}.", "Put the original file there."
        ) from error
