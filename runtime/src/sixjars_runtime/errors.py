"""The errors that both distributions raise on purpose, each a sentence for a person.

SixJarsError
|-- RecipeError    the recipe asks for something that cannot be built; carries every fault found
|-- DataError      a file or an example is missing or malformed
|-- ShapeError     two components do not fit together
|-- RunError       a run folder is missing, damaged, or does not belong to this recipe
|-- LearningError  training diverged
|-- RequestError   a server refused a request, or did not answer
|-- MissingExtra   an optional library is not installed
`-- Interrupted    the user stopped the work; what was saved is usable

`assert` is kept for what cannot happen.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from pathlib import PurePath
from reprlib import Repr
from typing import Final, final


class SixJarsError(Exception):
    """Anything that deserves a sentence instead of a traceback.

    >>> print(SixJarsError("The jar is empty."))
    The jar is empty.
    """

    exit_code = 2


@final
class RecipeError(SixJarsError):
    """A recipe that cannot be built, with every fault found in it.

    >>> print(RecipeError(["the lid is missing.", "the jar leaks."], "jam.yaml"))
    2 faults in jam.yaml:
      - the lid is missing.
      - the jar leaks.
    """

    def __init__(self, faults: Sequence[str], where: str = "this recipe") -> None:
        self.faults = tuple(faults)
        if len(self.faults) == 1:
            super().__init__(f"{where}: {self.faults[0]}")
        else:
            rest = [f"and {len(self.faults) - 50} more."] if len(self.faults) > 50 else []
            lines = "".join(f"\n  - {fault}" for fault in [*self.faults[:50], *rest])
            super().__init__(f"{len(self.faults)} faults in {where}:{lines}")


@final
class DataError(SixJarsError):
    """A file or an example is missing or malformed.

    >>> print(DataError("pairs.tsv, line 3: has 1 column, but 2 are needed."))
    pairs.tsv, line 3: has 1 column, but 2 are needed.
    """

    skippable = False
    """Whether it is one bad row of a file, which may be left out."""

    @classmethod
    def of_row(cls, sentence: str) -> "DataError":
        """About one bad row."""
        error = cls(sentence)
        error.skippable = True
        return error


@final
class ShapeError(SixJarsError):
    """Two components do not fit together; the sentence has both numbers.

    >>> print(ShapeError("memory (2, 3, 4) and mask (2, 5) must agree on (B, S)."))
    memory (2, 3, 4) and mask (2, 5) must agree on (B, S).
    """


@final
class RunError(SixJarsError):
    """A run folder is missing, damaged, or made by another recipe.

    >>> print(RunError("run folder runs/never-made does not exist."))
    run folder runs/never-made does not exist.
    """


@final
class LearningError(SixJarsError):
    """Learning cannot go on: the loss is no longer a number.

    >>> issubclass(LearningError, SixJarsError), LearningError.exit_code
    (True, 2)
    """


@final
class RequestError(SixJarsError):
    """A server refused a request, or did not answer; `status` is that of HTTP, if it answered.

    >>> RequestError("there is no model 'x'.", 404).status
    404
    """

    def __init__(self, sentence: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(sentence)


@final
class MissingExtra(SixJarsError):
    """An optional library is needed and not installed.

    >>> print(MissingExtra("pillow", "vision"))  # doctest: +ELLIPSIS
    pillow is not installed. Run: pip install 'sixjars...[vision]'
    """

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"{library} is not installed. Run: {install_command(extra)}")


@final
class Interrupted(SixJarsError):
    """The user stopped the work.

    >>> Interrupted.exit_code
    130
    """

    exit_code = 130


def need(module: str, extra: str, library: str | None = None) -> None:
    """Refuse to go on without a library that is optional, which is called as its module or else.

    >>> need("json", "vision")
    """
    try:
        import_module(module)
    except ImportError:
        raise MissingExtra(library or module, extra) from None


def install_command(extra: str) -> str:
    """Return the command that installs an optional library.

    An extra has the same name in both distributions, so the command names the toolkit where that
    is installed, and the runtime where it stands alone.

    >>> print(install_command("vision"))  # doctest: +ELLIPSIS
    pip install 'sixjars...[vision]'
    """
    distribution = "sixjars-runtime" if find_spec("sixjars") is None else "sixjars"
    return f"pip install '{distribution}[{extra}]'"


_SHORT: Final = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80
shown: Final[Callable[[object], str]] = _SHORT.repr
"""A value as a message quotes it: its beginning will do."""
ALIASES: Final = {
    alias: name
    for names in """
    rate=lr,learning_rate batch_examples=batch_size,batch
    epochs=num_epochs,max_epochs,n_epochs,epoch steps=max_steps,num_steps optimizer=opt
    warmup=warmup_steps patience=early_stopping
    accumulate=gradient_accumulation_steps,grad_accum weight_decay=l2,wd
    size=hidden_size,hidden_dim,hidden,dim,units,embedding_dim,embedding_size,vocab_size,max_vocab
    layers=num_layers,n_layers direction=bidirectional cell=rnn
    width=num_beams,beam_size,beam_width nbest=n_best,num_return_sequences top_k=topk top_p=topp
    no_repeat_ngram=no_repeat_ngram_size max_length=max_len,max_seq_length,max_new_tokens
    smoothing=label_smoothing clip=gradient_clip,grad_clip,clip_norm,max_grad_norm
    seed=random_seed,random_state tokens=tokenizer,tokenization min_count=min_freq
    lowercase=lower,do_lower_case on_long=truncation filter=where multi_label=several
    segments=parts frozen=tuned rationale=keys dimensions=numbers
    characters=char,chars,character words=word bpe=subwords,wordpiece unigram=sentencepiece
    additive=bahdanau general=luong cuda=gpu learning=training,trainer evaluation=eval
    data=dataset word_error_rate=wer character_error_rate=cer perplexity=ppl exact_match=em
    macro_f1=f1 rougeL=rouge cider_d=cider mean_reciprocal_rank=mrr alignment_error_rate=aer
    fp16=16,half bf16=mixed
    document_classification=classification,sentiment,topic,sentiment_analysis,topic_classification
    sentence_pair=nli,natural_language_inference,textual_entailment,rte,paraphrase
    sentence_pair=paraphrase_detection,sentence_pair_classification,text_pair,pair_classification
    image_classification=image_recognition,image_labelling,image_labeling
    video_classification=action_recognition translation=machine_translation,seq2seq
    image_captioning=captioning image_question_answering=vqa,visual_question_answering
    conversation=chatbot dialog=dialogue language_model=language_modeling,language_modelling
    pointing=pointer_network summarization=summarisation
    """.split()
    for name, aliases in [names.split("=")]
    for alias in aliases.split(",")
}
"""Names that people know from elsewhere, or from an earlier version -> ours."""
PLACES: Final = {
    "data": "train valid test source target label image question video",
    "model": "encoder bridge decoder",
    "model.encoder": "dropout layers direction cell",
    "loss": "smoothing",
    "learning": "rate epochs steps batch_examples batch_tokens optimizer seed warmup patience clip "
    "precision",
    "evaluation": "metrics search",
    "evaluation.search": "width nbest max_length temperature",
}
"""Keys that people write one level too high, and the section that they belong to."""
_PLACE_OF: Final = {
    key: f"{section}.{key}" for section, keys in PLACES.items() for key in keys.split()
}
DEVICE_WORDS: Final = {"gpu", "gpus", "cuda", "device", "devices", "accelerator"}
_SECTIONS: Final = {"learning", "epochs"}
"""One of these is known where the keys of a recipe or of `learning` are."""
MEMORY_IS_SHORT: Final = ("out of memory", "allocate memory", "not enough memory")
"""How torch says so, on a GPU and on a CPU."""
TOO_LARGE: Final = "there is not enough memory for this; make batches or sizes smaller."


def first_line(error: BaseException) -> str:
    r"""Return what a library complained about, short enough for a sentence.

    >>> first_line(ValueError("no jar is open.\nAt line 3.")), first_line(ValueError())
    ('no jar is open', 'ValueError')
    """
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def memory_is_short(error: BaseException) -> bool:
    """Whether an error says that the machine or its GPU has too little memory.

    >>> memory_is_short(MemoryError()), memory_is_short(ValueError("no jar"))
    (True, False)
    """
    return isinstance(error, MemoryError) or any(words in str(error) for words in MEMORY_IS_SHORT)


def hint(got: object, known: Collection[str]) -> str:
    """Return the right name that a wrong one probably stands for, or nothing, as a sentence.

    >>> hint("hiden", ["hidden", "layers"]), hint("ROUGE-L", ["rouge1", "rougeL"])
    (" Did you mean 'hidden'?", " Did you mean 'rougeL'?")
    >>> hint("lr", ["rate"]), hint("epochs", ["data", "learning"]), hint("spoon", ["mine"])
    (" Did you mean 'rate'?", " Did you mean 'learning.epochs'?", '')
    """
    name = str(got)[:200]
    alias = ALIASES.get(name.lower(), name)
    if name.lower() in DEVICE_WORDS and _SECTIONS.intersection(known):
        return (
            " Where to compute is no key of a recipe: say --device cuda (in Python: device='cuda')."
        )
    same = [candidate for candidate in known if _letters(candidate) == _letters(name)]
    guesses = [alias] if alias in known else same or get_close_matches(name, known, n=1, cutoff=0.7)
    if not guesses and len(name) > 3:  # the only one that begins like this
        begun = [other for other in known if other.lower().startswith(name.lower())]
        guesses = begun if len(begun) == 1 else []
    if not guesses and "learning" in known and alias in _PLACE_OF:
        guesses = [_PLACE_OF[alias]]
    return f" Did you mean {guesses[0]!r}?" if guesses else ""


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def file_hint(got: str, files: Iterable[str]) -> str:
    """Return the file that a wrong name probably stands for, as a sentence.

    It lies beside it, with the same ending and almost the same name.

    >>> file_hint("mien.yaml", ["mine.yaml"]), file_hint("nofile.yaml", ["mine.yaml"])
    (" Did you mean 'mine.yaml'?", '')
    """
    path = PurePath(got)
    beside = {
        PurePath(file).stem: file
        for file in files
        if PurePath(file).suffix.lower() == path.suffix.lower()
    }
    guesses = get_close_matches(path.stem, beside, n=1, cutoff=0.7)
    return f" Did you mean {beside[guesses[0]]!r}?" if guesses else ""


def the(name: str) -> str:
    """A field as a sentence names it; a numbered one has no article.

    >>> the("source"), the("sentence2")
    ('the source', 'sentence2')
    """
    return name if name[-1:].isdigit() else f"the {name}"


def unknown(what: str, got: object, known: Collection[str]) -> str:
    """Return a sentence for an unknown name: what it is, and what would be right.

    >>> unknown("key", "hiden", ["hidden", "layers"])
    "key 'hiden' is unknown. Did you mean 'hidden'? Known: hidden, layers."
    """
    return (
        f"{what} {shown(str(got))} is unknown.{hint(got, known)} Known: {', '.join(sorted(known))}."
    )
