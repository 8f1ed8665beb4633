"""The options that ``polygraphy run`` gets: ``--trtc`` and what belongs to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy.tools.args import ModelArgs
from polygraphy.tools.args import util as args_util
from polygraphy.tools.args.base import BaseArgs, BaseRunnerArgs
from polygraphy.tools.script import make_invocable

if TYPE_CHECKING:
    import argparse

    from polygraphy.tools.script import Script

_MODULE = "trtc.tools.polygraphy_plugin"


class TrtcRunnerArgs(BaseRunnerArgs):  # type: ignore[misc]
    """trtc Inference: running bundles with trtc.

    Depends on:

        - ModelArgs: if no bundle is given
    """

    def get_name_opt_impl(self) -> tuple[str, str]:
        """Return the name for people, and the option without its dashes."""
        return "trtc", "trtc"

    def get_extra_help_text_impl(self) -> str:
        """Say what is run when no bundle is given."""
        return "Without --trtc-bundle the model is compiled first, with every size served as it comes."

    def add_parser_args_impl(self) -> None:
        """Add the options."""
        add = self.group.add_argument
        add("--trtc-bundle", metavar="NAME.trtc", default=None, help="Bundle to run, as `trtc build` made it.")
        add("--trtc-engine", metavar="NAME", default=None, help="Engine of the bundle; the first that fits this host.")
        add("--trtc-profile", metavar="NAME", default=None, help="Run in this profile only; it is picked by size.")
        add(
            "--trtc-mode",
            choices=["exact", "bucket"],
            default=None,
            help="Run at exact sizes, or padded to the bucket; as the build chose.",
        )
        add("--trtc-threads", metavar="COUNT", type=int, default=None, help="Threads of one call; as measured.")
        add("--trtc-save-bundle", metavar="NAME.trtc", default=None, help="Keep the bundle that was compiled here.")

    def parse_impl(self, args: argparse.Namespace) -> None:
        """Read the options."""
        self.bundle = args_util.get(args, "trtc_bundle")
        self.save_bundle = args_util.get(args, "trtc_save_bundle")
        self.options = {name: args_util.get(args, f"trtc_{name}") for name in ("engine", "profile", "mode", "threads")}

    def add_to_script_impl(self, script: Script) -> None:
        """Add the runner, and what makes its bundle, to the script that Polygraphy generates."""
        bundle = self.bundle
        if bundle is None:
            script.add_import(imports=["BundleFromOnnx"], frm=_MODULE)
            made = make_invocable("BundleFromOnnx", self.arg_groups[ModelArgs].path)
            bundle = script.add_loader(made, "build_trtc_bundle")
            if self.save_bundle is not None:
                script.add_import(imports=["SaveBundle"], frm=_MODULE)
                bundle = script.add_loader(make_invocable("SaveBundle", bundle, self.save_bundle), "save_trtc_bundle")
        script.add_import(imports=["TrtcRunner"], frm=_MODULE)
        script.add_runner(make_invocable("TrtcRunner", bundle, **self.options))


def argument_groups() -> list[BaseArgs]:
    """Return what ``polygraphy run`` is to offer; its entry point names this function."""
    return [TrtcRunnerArgs()]
