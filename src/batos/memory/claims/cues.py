"""Find from the words of a statement if it corrects another, is of the past or supposes; a table for each language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Literal, TypeAlias

#: A statement that *corrects* takes the place of an earlier one whose subject it need not name; one that *updates*
#: takes the place of one about the same subject. *Past* is what no longer holds, *refers* what may tell of it.
#: In English a word that is more often none ("I actually like it", "make it fun") counts only where a clause begins.
#: *Supposes* asserts nothing, *concludes* rests on what was said before. *Explores* opens a talk that asserts nothing,
#: *interrupts* opens another topic, *returns* ends either. *Denies* tells that somebody was wrong,
#: *commands* speaks to the machine, not of anything.
Cue: TypeAlias = Literal[
    "corrects",
    "updates",
    "past",
    "refers",
    "supposes",
    "concludes",
    "explores",
    "interrupts",
    "returns",
    "denies",
    "commands",
]

_ENGLISH: Final[Mapping[Cue, str]] = {
    "corrects": (
        r"(?<![^\W\d_] )actually|actually,|(?:is|it's|that's) actually|instead(?! of)"
        r"|(?<![^\W\d_] )make (?:that|it)(?! (?:an?|so|work|happen)\b)|make (?:that|it)(?= \S*\d)"
        r"|no,? wait|wait,? no|scratch that|correction|overrid(?:e|es|ing)"
        r"|overrul(?:e|es|ing)|(?:chang|switch|mov)(?:e|ed|ing) (?:that|it|the \w+) (?:to|from)|change of plans?"
        r"|hold off|never mind|per (?:the )?(?:ceo|cfo|cto|board|director|management)"
        r"|(?:we've|we have|have been|has been|is now|was) finali[sz]ed"
        r"|the final \w+(?: \w+)? (?:is|are|will be)"
    ),
    "updates": (
        r"(?<!for )(?<!right )(?<!until )(?<!by )now(?! and then)|no longer|not any ?more|as of (?:today|now)"
        r"|(?<![^\W\d_] )updates?(?= on\b| *[:–—-])|updates?(?= *:)|updated(?= to\b| *:)"
        r"|(?:is|are|was|were|been|terms|policy|plan|price) updated|(?:pricing|price|policy|schedule|status) update"
        r"|officially|the official \w+(?: \w+)? (?:is|are)|re-?scheduled"
        r"|moved (?:to|from)|changed (?:to|from)|postponed|cancell?ed|resolved|let'?s (?:proceed|go) with"
        r"|we'?(?:re| are) going with|frozen|capped|per policy|switched to|replaced (?:by|with)"
    ),
    "past": (
        r"original(?= (?:\w+ )?\w+ (?:was|were|is|had)\b)|originally|initially|formerly|used to (?:be|have)"
        r"|was considered"
    ),
    "refers": r"was|were|previous(?:ly)?|earlier|incorrect|wrong|wanted|intended|planned|estimated|recommend(?:s|ed)",
    "supposes": (
        r"maybe|perhaps|might be|could be|possibly|potentially|hypothetical(?:ly)?|theoretical(?:ly)?|tentative(?:ly)?"
        r"|let'?s say|what if|worst case|draft|brainstorming|we'?(?:re| are) thinking|working assumption|suppose"
    ),
    "concludes": r"so|therefore|thus|hence|consequently|as a result|it follows|that means",
    "explores": (
        r"exploratory|brainstorm(?:ing)?|hypothetical(?:ly)?|what[- ]if|just exploring|thought experiment"
        r"|role[- ]?play"
    ),
    "interrupts": r"hold on|hang on|one moment|sorry to interrupt|quick interruption",
    "returns": (
        r"back to|continu(?:e|ing)|resum(?:e|ing)|returning to|that'?s enough|enough of (?:that|this)"
        r"|let'?s talk about real"
    ),
    "denies": r"(?:was|were|is|are) (?:also |simply |just )?(?:wrong|mistaken|incorrect)",
    "commands": (
        r"(?:ignore|disregard|forget) (?:all |any |your |the )*(?:previous|prior|earlier|above)"
        r" (?:instructions?|rules|prompts?)"
        r"|you are now (?:in|an?)\b|(?:admin|developer|debug|god) mode|system prompt"
    ),
}
_GERMAN: Final[Mapping[Cue, str]] = {
    "corrects": (
        r"stattdessen|nein,? warte|moment,? nein|korrektur|planänderung|doch nicht|ich meinte|endgültig"
        r"|mach daraus"
    ),
    "updates": (
        r"jetzt|nicht mehr|ab (?:sofort|heute)|aktualisierung|offiziell|verschoben|geändert (?:auf|in|zu)|abgesagt"
        r"|storniert|umgezogen"
    ),
    "past": r"ursprünglich|anfangs|früher einmal|zunächst",
    "refers": r"vorherige[rnsm]?|falsch|bisherige[rnsm]?",
    "supposes": (
        r"vielleicht|möglicherweise|könnten?|hypothetisch|theoretisch|vorläufig|angenommen|entwurf|mal angenommen"
    ),
    "concludes": r"daher|deshalb|folglich|somit|demnach",
    "explores": r"gedankenspiel|brainstorming|nur mal angenommen|unverbindlich",
    "interrupts": r"moment mal|warte kurz|kurze unterbrechung",
    "returns": r"zurück zu[mr]?|weiter mit|genug davon",
    "denies": r"(?:war|waren|ist|sind) (?:auch )?falsch",
    "commands": (
        r"(?:ignoriere|vergiss|missachte) (?:alle |deine |die )*(?:bisherigen|vorherigen|früheren)"
        r" (?:anweisungen|regeln)"
        r"|du bist (?:jetzt|nun) (?:im|ein)"
    ),
}
_FRENCH: Final[Mapping[Cue, str]] = {
    "corrects": r"en fait|plutôt|non,? attends|non,? attendez|correction|changement de plan|finalement|à la place",
    "updates": (
        r"maintenant|désormais|ne (?:\w+ )?plus|mise à jour|officiel(?:lement)?|reporté(?:e|s)?|déplacé(?:e|s)?"
        r"|annulé(?:e|s)?|changé en"
    ),
    "past": r"à l'origine|au départ|initialement|auparavant",
    "refers": r"précédente?|était|étaient|incorrecte?",
    "supposes": (
        r"peut-être|pourrai(?:t|ent|s)|hypothétiquement|théoriquement|provisoire(?:ment)?|brouillon|supposons"
    ),
    "concludes": r"donc|par conséquent|ainsi",
    "explores": r"à titre exploratoire|remue-méninges|hypothétique",
    "interrupts": r"une seconde|attends|attendez",
    "returns": r"revenons à|retour à|assez de",
    "denies": r"(?:avait|avaient) tort|s'est trompée?",
    "commands": (
        r"(?:ignore|oublie)[zs]? (?:toutes )?(?:les |tes |vos )?(?:instructions|consignes) précédentes"
        r"|tu es maintenant (?:en|un)"
    ),
}
_SPANISH: Final[Mapping[Cue, str]] = {
    "corrects": (
        r"en realidad|mejor dicho|no,? espera|corrección|cambio de planes?|en (?:su|vez de eso|lugar de eso)"
        r"|al final"
    ),
    "updates": (
        r"ahora|ya no|a partir de (?:hoy|ahora)|actualización|oficial(?:mente)?|aplazad[oa]s?|trasladad[oa]s?"
        r"|cancelad[oa]s?|cambiad[oa]s? a"
    ),
    "past": r"originalmente|inicialmente|al principio|antes era",
    "refers": r"anterior(?:es)?|era|eran|incorrect[oa]",
    "supposes": (
        r"quizás?|tal vez|podría(?:n|mos)?|hipotéticamente|teóricamente|provisional(?:mente)?|borrador|supongamos"
    ),
    "concludes": r"por (?:lo )?tanto|así que|por consiguiente",
    "explores": r"lluvia de ideas|hipotético|solo explorando",
    "interrupts": r"un momento|espera",
    "returns": r"volviendo a|volvamos a|basta de",
    "denies": r"(?:estaba|estaban) equivocad[oa]s?",
    "commands": r"(?:ignora|olvida) (?:todas )?(?:las |tus )?instrucciones anteriores|ahora eres un",
}
#: The table of each language.
TABLES: Final = (_ENGLISH, _GERMAN, _FRENCH, _SPANISH)

#: Corrections that are as often said for emphasis: alone, and without a number or a name, they are none.
EMPHATIC: Final = r"actually|eigentlich|doch nicht|en fait|finalement|plutôt|en realidad|al final"
#: Words of a question that asks for what no longer holds.
ASKING_HISTORY: Final = (
    r"before|earlier|previous(?:ly)?|originally|formerly|used to|in the past|history|at first|superseded|no longer"
    r"|vorher|früher\w*|ursprünglich\w*|bisher\w*|avant|auparavant|précédente?s?|antes|anterior(?:es)?|anteriormente"
)
#: The verbs between a subject and its value: of now, and of the past.
CLAIMING: Final = r"is|are|will be|ist|sind|wird|est|sont|sera|es|son|será|(?:has |have )?(?:moved|changed) to"
PAST_VERBS: Final = r"was|were|war|waren|était|étaient|era|eran"
#: Words by which somebody speaks of themselves, and words before a thing of which there is only this.
FIRST_PERSON: Final = r"i|we|ich|wir|je|nous|yo"
DEFINITE: Final = r"the|our|this|der|die|das|unser|unsere|le|la|les|notre|el|los|las|nuestro|nuestra"
#: Words that turn a statement into its opposite.
NEGATIONS: Final = r"not|no longer|never|nicht|kein|keine|nie|pas|plus|jamais|nunca|ya no"

#: Words that say nothing about a subject or a value, in the languages that have a table.
SMALL_WORDS: Final = frozenset(
    "the a an of to in on at by for from with and or but is are was were be been being am will would can"
    " could should may might do does did done have has had it its this that these those there here i you he"
    " she we they me him her us them my your his our their mine as so not no if then than all any each every"
    " some just now new also too very into over under up out off about let try s re ll ve m d t what which who"
    " when where how why please note update make need want keep going go get got yes ok okay instead actually"
    " one more most own again still only because while during per der die das ein eine einer eines dem den des"
    " und oder aber ist sind war waren wird wurde nicht kein es wir ihr sie er ich du im auf aus bei mit nach"
    " von vor zu zum zur für als auch noch nur jetzt le la les un une de et ou mais est sont était il elle"
    " nous vous ils elles je tu ce cette dans sur pour par avec ne pas plus maintenant el los las una y o pero"
    " son era lo en con por para ya ahora del al se su sus".split()
)


#: Cues that count only where a statement begins.
_AT_START: Final[frozenset[Cue]] = frozenset({"concludes", "interrupts"})
#: A break after which a clause that opens another topic goes on: "Hold on - ...", not "Hold on VendorA".
_BREAK: Final = r"\s*[-–—,:;.!]"


def _pattern(cue: Cue) -> re.Pattern[str]:
    any_of = "|".join(table[cue] for table in TABLES)
    opening = r"\A\W*" if cue in _AT_START else r"(?<!\w)"
    closing = _BREAK if cue in _AT_START else r"(?!\w)"
    return re.compile(f"{opening}(?:{any_of}){closing}", re.IGNORECASE)


_PATTERNS: Final[Mapping[Cue, re.Pattern[str]]] = {cue: _pattern(cue) for cue in TABLES[0]}
#: Signs that something is supposed, where a value is noted in a few words: "(tentative)", "Draft: ...".
_NOTED: Final = re.compile(
    r"\((?:tentative|draft|provisional|tbc|vorläufig|entwurf|provisoire|brouillon|provisional|borrador)\)|\Adraft:",
    re.IGNORECASE,
)
_EMPHATIC: Final = re.compile(rf"(?<!\w)(?:{EMPHATIC})(?!\w),?", re.IGNORECASE)
_ALONE: Final = re.compile(r"(?<!\w)(?:i|ich|je|yo|my|mein\w*|mon|ma|mi)(?!\w)", re.IGNORECASE)
_ASKING_HISTORY: Final = re.compile(rf"(?<!\w)(?:{ASKING_HISTORY})(?!\w)", re.IGNORECASE)
# Words of somebody else, which are no cue of who quotes them.
_QUOTED: Final = re.compile(r"(?<!\w)'[^'\n]{12,}'(?!\w)|\"[^\"\n]{12,}\"|“[^“”\n]{12,}”|«[^«»\n]{12,}»|„[^„“\n]{12,}“")
#: Statements whose cues are kept.
_KNOWN: Final = 8_192
_ASKED: Final = re.compile(r"\A\s*¿|[?？؟][\"'”’»)\]」』]*\s*\Z|(?:吗|呢|か)[。！]?\s*\Z")


@lru_cache(maxsize=_KNOWN)
def has(cue: Cue, statement: str) -> bool:
    """Test if a statement has a cue.

    >>> has("corrects", "No wait, make that Tuesday."), has("corrects", "It is Tuesday.")
    (True, False)
    >>> has("updates", "Das Treffen ist jetzt in Ulm."), has("supposes", "Podríamos ir a Cádiz.")
    (True, True)
    """
    return _PATTERNS[cue].search(_QUOTED.sub(" ", statement)) is not None


def before(cue: Cue, statement: str) -> str:
    """Return the words before a cue; "" if it is not there."""
    found = _PATTERNS[cue].search(statement)
    return statement[: found.start()] if found else ""


def without(cue: Cue, statement: str) -> str:
    """Return a statement without the words of a cue."""
    return _PATTERNS[cue].sub(" ", statement)


def is_past(statement: str) -> bool:
    """Test if a statement says that it no longer holds; of a person's own past it is true.

    >>> is_past("Originally the price was 9 euros."), is_past("I originally studied law.")
    (True, False)
    """
    return has("past", statement) and _ALONE.search(statement) is None


def asks_history(question: str) -> bool:
    """Test if a question asks for what no longer holds, so that this is worth to be shown, marked.

    >>> asks_history("On which day was the launch before?"), asks_history("On which day is the launch?")
    (True, False)
    """
    return _ASKING_HISTORY.search(question) is not None


def is_firm(statement: str) -> bool:
    """Test if a statement corrects by more than a word that is as often said for emphasis.

    >>> is_firm("Actually, it is fine."), is_firm("Actually, let us switch to tea instead.")
    (False, True)
    """
    return has("corrects", _EMPHATIC.sub(" ", statement))


def is_question(statement: str) -> bool:
    """Test if a statement is a question, which claims nothing."""
    return _ASKED.search(statement) is not None


def is_noted_as_supposed(value: str) -> bool:
    """Test if a short value calls itself a draft or tentative.

    >>> is_noted_as_supposed("phased rollout (tentative)")
    True
    """
    return _NOTED.search(value) is not None
