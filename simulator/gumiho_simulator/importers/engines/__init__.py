"""Logs of other engines: SGLang, TensorRT-LLM, llama.cpp, gpt-fast."""

from gumiho_simulator.importers.engines.gpt_fast import GptFast
from gumiho_simulator.importers.engines.llama_cpp import LlamaCpp
from gumiho_simulator.importers.engines.sglang import Sglang
from gumiho_simulator.importers.engines.tensorrt_llm import TensorRtLlm

__all__ = ["GptFast", "LlamaCpp", "Sglang", "TensorRtLlm"]
