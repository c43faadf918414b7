"""Where the actions or sensors of a pack import from, here and in the Pythons that they start."""

from __future__ import annotations

import os
import sys
import sysconfig

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def set_paths(pack_folder: str, *folders: str) -> None:
    """Sets the paths: the pack's `lib`, its environment, and these folders of the pack.

    The first entry of `sys.path`, the folder of the script, is dropped: it holds nothing for packs.
    """
    libraries = [os.path.join(pack_folder, "lib")]
    if sys.prefix != sys.base_prefix:
        library = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        libraries.append(os.path.join(sys.prefix, "lib", library))
        libraries.append(sysconfig.get_path("purelib"))
        binaries = os.path.join(sys.prefix, "bin")
        os.environ["PATH"] = f"{binaries}:{os.environ.get('PATH', os.defpath)}"
    libraries += [os.path.join(pack_folder, folder) for folder in folders]
    inherited = [path for path in os.environ.get("PYTHONPATH", "").split(":") if path]
    libraries += [*inherited, FOLDER]
    os.environ["PYTHONPATH"] = ":".join(libraries)
    rest = [path for path in sys.path[1:] if path not in libraries]
    sys.path[:] = [sysconfig.get_path("platlib"), *libraries, *rest]
