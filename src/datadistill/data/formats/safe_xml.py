"""Reading XML files that are not trusted."""

from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, TreeBuilder
from xml.parsers import expat

from ...errors import DataError
from ...reading import read_regular

MOST_BYTES = 2**20


def read_xml(path: Path) -> Element:
    """Reads a small XML file; raises an error if it declares entities or a document type.

    Entities can expand a few lines to gigabytes, or refer to other files.
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
        parser.Parse(read_regular(path, MOST_BYTES), True)
        return builder.close()
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror}.", "Use the original file."
        ) from error
    except (ParseError, expat.ExpatError, ValueError, LookupError) as error:
        raise DataError(f"{path} is not valid XML: {error}.", "Use the original file.") from error
