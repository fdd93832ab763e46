"""Recognise by rule which kind of answer a question wants: one fact, or the whole of a text.

The words that tell are of six languages and some of others. A question asks for one fact only where no other kind fits
and a word of questions is there: an unknown one is `other`, for which evidence is shown whole.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal[
    "fact", "list", "compare", "summarise", "aggregate", "code", "rewrite", "extract", "other"
]  # fmt: skip


def _compile_any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{each})" for each in alternatives), re.IGNORECASE)


# Names of things that a program is made of, and of texts that are written for somebody.
_CODE_EN = r"(?:function|method|script|class|program|regexp?|regular expression|query|sql|code|command|one-?liner|macro|formula|unit ?tests?|dockerfile|makefile|cron ?(?:job|tab)?|loop|snippet|endpoint|stored procedure|pipeline)"
_CODE_EU = r"(?:funktion|skript|script|methode|klasse|abfrage|regex|regulären? ausdruck|befehl|einzeiler|quelltext|code|programm|makro|formel|fonction|méthode|classe|requête|expression régulière|commande|programme|función|método|clase|consulta|expresión regular|comando|código|programa|macro|fórmula|bug)"
_CODE_AS = r"(?:函数|代码|脚本|正则|SQL|命令|程序|查询语句|语句|宏|公式|関数|コード|スクリプト|正規表現|コマンド|プログラム|クエリ|マクロ|数式)"
_LETTER = r"(?:e-?mail|letter|reply|response|message|post|note|invitation|reminder|speech|announcement|cover letter|text|tweet|mail|brief|antwort|nachricht|einladung|absage|rede|beitrag|anschreiben|courriel|lettre|réponse|invitation|discours|mot|texte|annonce|correo|carta|respuesta|mensaje|invitación|discurso|texto|anuncio|lettera|risposta|messaggio)"

_CODE: Final = _compile_any(
    rf"\b(?:write|implement|create|give me|show me|need|build|make|code|program)\b.{{0,40}}\b{_CODE_EN}s?\b",
    rf"\b(?:explain|fix|review|optimi[sz]e|test|document|port|rewrite|speed up|what (?:does|is wrong with))\b.{{0,30}}\b{_CODE_EN}s?\b",
    r"\b(?:stack ?trace|traceback|refactor\w*|debug\w*|compile\w*|segfault|null pointer|bugs?|off-by-one)\b",
    r"\b(?:python|javascript|typescript|bash|java|rust|golang|sql|html|css|powershell|awk|sed|php|regex|numpy|pandas)\b",
    rf"\b(?:schreib\w*|programmier\w*|implementier\w*|erklär\w*|beheb\w*|finde?|optimier\w*|repariere?|bau\w*|was macht|brauche|gib mir)\b.{{0,40}}\b{_CODE_EU}",
    rf"\b(?:écri[stv]\w*|explique\w*|corrige\w*|implémente\w*|donne\w*|trouve\w*|optimise\w*|que fait|fais\w*|besoin d).{{0,40}}\b{_CODE_EU}",
    rf"(?:escrib\w*|explic\w*|explíc\w*|corri[gj]\w*|implement\w*|dame|encuentra|optimiz\w*|qué hace|haz\w*|crea\w*|necesito|arregla\w*)\b.{{0,40}}\b{_CODE_EU}",
    rf"(?:写|编写|实现|解释|修复|优化|重构|调试|帮我看|生成|给我).{{0,25}}{_CODE_AS}|{_CODE_AS}.{{0,12}}(?:错误|报错|哪里|优化|什么意思|修|干|做什么|怎么写)|报错",
    rf"{_CODE_AS}.{{0,25}}(?:書い|書き|作っ|作成|直し|説明|修正|教え|ください|最適化|何をし|どう動)|バグ|リファクタ|デバッグ|エラーが出",
)
_REWRITE: Final = _compile_any(
    r"\b(?:re-?write|rephrase|paraphrase|translat(?:e|ing)|proof-?read|shorten|reword|polish|simplify|formali[sz]e)\b",
    rf"\b(?:draft|compose|write|prepare|send|answer)\b.{{0,40}}\b{_LETTER}\b",
    r"\b(?:make|turn|put) (?:it|this|that|the|my|these)\b.{0,40}\b(?:shorter|longer|formal|polite|friendl\w+|simpler|clearer|sound|professional|into (?:an?|plain|english)\b)",
    r"\b(?:correct|fix|improve|check) (?:the |my )?(?:grammar|spelling|typos|style|wording|tone|punctuation)\b",
    r"\bin (?:plain|simpler?|formal|easy) (?:english|words|language)\b",
    rf"\b(?:schreib\w*|formulier\w*|verfass\w*|entw[iu]rf\w*|setz\w*)\b.{{0,60}}\b(?:um|neu|höflicher|förmlicher|auf|{_LETTER})\b",
    r"\b(?:übersetze?n?|übertrag\w*|umschreiben|umformulieren|kürze\w*|kürz|korrigier\w*|vereinfach\w*|überarbeite\w*)\b",
    r"\b(?:mach\w*|klingt|kling\w*)\b.{0,40}\b(?:kürzer|höflicher|förmlicher|freundlicher|einfacher|knapper|lockerer)\b",
    r"\b(?:réécri\w*|reformule\w*|tradui[st]\w*|corrige\w*|raccourci\w*|simplifie\w*|mets?\b.{0,30}\ben (?:anglais|allemand|français))",
    rf"\b(?:rédige\w*|écri[stv]\w*|prépare\w*)\b.{{0,50}}\b{_LETTER}\b|\b(?:rend\w*|ton)\b.{{0,40}}\bplus (?:poli|formel|court|simple|clair|cordial|amical)",
    r"\b(?:reescrib\w*|reformul\w*|traduc\w*|traduzc\w*|corri[gj]\w*|acort\w*|simplific\w*|hazlo más|pásalo al?|pon\w* .{0,30}(?:formal|inglés|francés))",
    rf"\b(?:redact\w*|escrib\w*|prepar\w*)\b.{{0,50}}\b{_LETTER}\b|\bmás (?:formal|educad\w|corto|amable|sencill\w|breve)\b",
    r"\b(?:riscriv\w*|riformul\w*|herschrijf\w*|vertaal\w*|scriv\w*.{0,30}(?:mail|lettera|risposta))\b",
    r"翻译|译成|译为|改写|润色|改成|改得|改短|重写|缩短|校对|拟一?[份封]?|(?:写|起草|草拟).{0,10}(?:邮件|信|回复|通知|短信|文案|邀请|发言)|更(?:正式|礼貌|简洁|口语)",
    r"翻訳|訳して|に訳|書き直|書き換え|言い換え|添削|校正|(?:丁寧|敬語|簡潔|やさし|短く|カジュアル|フォーマル).{0,6}(?:直|して|変え)|リライト",
    r"(?:メール|手紙|返信|返事|案内|文面|招待|お礼|挨拶).{0,14}(?:書い|書き|作っ|作成|考え)",
)
_EXTRACT: Final = _compile_any(
    r"(?<![a-z])(?:json|csv|yaml|xml|tsv|ndjson)(?![a-z])",
    r"\b(?:extract|parse|pull (?:out|all|the)|pick out|fill (?:in|out)|key-?value|structured|tabulate|(?:in|into|as) (?:a |an )?(?:table|spreadsheet))\b",
    r"\b(?:extrahier\w*|auslesen|lies\b.{0,60}\b(?:aus|heraus)|herausziehen|zieh\w*\b.{0,60}\b(?:heraus|raus)|trag\w*\b.{0,60}\bein|füll\w*\b.{0,60}\baus|als tabelle|in (?:eine[r]? )?tabelle)\b",
    r"\b(?:extrai\w*|extraye\w*|extrae\w*|extraig\w*|extraer|remplis\w*|rellena\w*|estrai\w*|relève\w*|récupère\w*|en tableau|dans un tableau|(?:en|a|como) (?:una )?tabla|saca\w*)\b",
    r"提取|抽取|抽出|解析|填(?:入|写|表)|(?:做|整理|列|制)成.{0,6}表|抜き出|取り出し|書き出し|表に(?:し|まと|整)|一覧表|表形式",
)
_COMPARE: Final = _compile_any(
    r"\b(?:compar\w*|contrast|versus|vs\.?|differences?|differ|pros and cons|advantages|trade-?offs?|side by side)\b",
    r"\bwhich (?:one |of .{2,60} |option |plan |offer )?(?:is|are|has|would be|should i \w+) .{0,60}\b(?:better|cheaper|safer|faster|larger|best|more \w+|or)\b",
    r"\bor\b.{0,40}\b(?:better|cheaper|safer|faster|which|more \w+)\b|\b(?:better|cheaper|faster|prefer)\b.{0,60}\bor\b",
    r"\b(?:vergleich\w*|unterschied\w*|unterscheid\w*|gegenüber(?:stell\w*)?|vor- und nachteile|schneidet)\b",
    r"\boder\b.{0,60}\b(?:besser|günstiger|billiger|schneller|sinnvoller|lohnt|eher|was ist)\b|\b(?:besser|günstiger|lieber)\b.{0,60}\boder\b",
    r"\b(?:différences?|diffère\w*|différent\w*|avantages|inconvénients|mieux|lequel|laquelle|par rapport)\b",
    r"\b(?:diferenci\w*|difieren|ventajas|mejor|conviene más|confront\w*|verschil\w*|differenz\w*)\b",
    r"比较|对比|相比|区别|不同(?:之处|点)?|差别|差异|优缺点|哪个(?:更|好|划算)|还是.{0,15}(?:更|好|划算)|比較|違い|違う|比べ|相違|どちら|どっち|長所と短所",
)
_SUMMARISE: Final = _compile_any(
    r"\b(?:summar(?:y|ies|i[sz]e\w*|i[sz]ing)|tl;?dr|overview|(?:main|key|most important) (?:points?|ideas?|messages?|takeaways?|findings?)|takeaways?|gist|in a nutshell|sum (?:it|this|that|up)|recap|digest|what(?:'s| is) (?:it|this|that|the \w+) (?:all )?about|boil\w* down|highlights)\b",
    r"\bfass\w*\b.{0,80}\bzusammen\b|\b(?:zusammen(?:zu)?fass\w*|überblick|kern(?:punkte|aussagen?)|hauptpunkte|wichtigsten? (?:punkte|aussagen?|inhalte?|infos)|das wichtigste|kurzfassung|stichpunkte\w*|worum geht)\b",
    r"\b(?:résum\w*|synthèse|synthétise\w*|points? (?:clés?|principaux|essentiels?|importants?)|grandes (?:lignes|idées)|idées (?:principales|clés)|en bref|l'essentiel|de quoi parle|à retenir)\b",
    r"\b(?:resum\w*|síntesis|sintetiz\w*|puntos? (?:clave|principales|importantes)|ideas? (?:principales|clave)|de qué (?:trata|va)|en pocas palabras|lo (?:esencial|más importante)|riassu\w*|samenvat\w*)\b",
    r"总结|概括|摘要|要点|概述|归纳|大意|简述|主要(?:内容|讲|说|观点)|讲了(?:什么|啥)|说了(?:什么|啥)|要約|まとめ|概要|要旨|要点|ポイント|あらすじ|ざっくり",
)
_AGGREGATE: Final = _compile_any(
    r"\b(?:sum of|total\w*|altogether|av[ae]r[ae]ge\w*|mean (?:of|value)|median|add up|percentage of|in all|overall|calculate|compute|tally|count (?:the|how|all|up))\b",
    r"\b(?:highest|lowest|largest|smallest|most expensive|cheapest|maximum|minimum|longest|shortest|most often|biggest)\b",
    r"\bhow (?:many|much)\b.{0,60}\b(?:between|until|passed|are there|in total|together|left|combined|did (?:i|we) spend|have (?:i|we))\b",
    r"\bhow many (?:rows|entries|lines|items|records|people|times|days|weeks|hours)\b",
    r"\b(?:summe|insgesamt|gesamt\w*|durchschnitt\w*|im schnitt|mittelwert|zusammen(?:gerechnet|gezählt)?|höchste\w*|niedrigste\w*|größte\w*|kleinste\w*|teuerste\w*|billigste\w*|günstigste\w*|längste\w*|berechne\w*|rechne\w*|zähl\w*|addier\w*)\b",
    r"\bwie ?viele? (?:tage|wochen|monate|jahre|zeilen|einträge|stunden|personen|stück)\b|\bwie oft\b",
    r"\b(?:somme|au total|total\w*|en tout|moyen\w*|médiane|calcule\w*|additionne\w*|compte[zr]?|l[ea] (?:plus|moins) \w+|combien (?:de|d'))\b",
    r"\b(?:suma\w*|en total|total|promedio|media de|mediana|(?:el|la|los|las) (?:más|menos) \w+|más (?:car|alt|grand|larg|baj|barat)\w*|calcul\w*|cuenta\w*|cuánt[oa]s)\b",
    r"总(?:共|计|额|数|和|价|花费)|一共|合计|共计|平均|最(?:高|低|大|小|多|少|贵|便宜|长|短)|计算|(?:多少|几)(?:天|行|条|个|次|项|人)|相差|加起来|统计",
    r"合計|総(?:額|数|計)|全部で|平均|最(?:も|大|小|高|低|多|少|安|長|短)|計算|何(?:日間|日後|日前|件|行|個|回|人|本|名)|一番|集計|足す",
)
_LIST: Final = _compile_any(
    r"\b(?:list|enumerate|name (?:all|every|each|the \w+s)|all (?:the |of the |my |our )?\w+s|every \w+|each \w+|which ones|everything|everyone)\b",
    r"\bwhat (?:are|were) (?:the|all|my|our|their)\b|\bwho (?:all|are|were)\b|\b(?:which|what) (?:\w+ ){0,2}\w+s (?:are|were|have|do|did|need|must|should|does|is|can|will|has|was)\b",
    r"\b(?:liste?\w*\b.{0,60}\bauf|alle[snr]?|sämtliche\w*|jede[rsnm]?|nenn\w*|aufzähl\w*|auflist\w*|aufgelistet|liste)\b",
    r"\bwelche (?:\w+ )?\w+(?:en|n|e|er|s) (?:sind|wurden|gibt|gab|haben|hat|werden|müssen|muss|stehen|kommen|soll\w*|brauch\w*|nennt|fehlen)\b|\bwer (?:alles|sind|waren)\b",
    r"\b(?:list\w*|énumère\w*|tou(?:s|tes) (?:les|mes|nos)|chaque|quel(?:le)?s (?:\w+ ){0,2}(?:sont|ont|étaient|faut|doit|dois)|qui sont)\b",
    r"\b(?:lista\w*|enumer\w*|tod[oa]s (?:l[oa]s|mis)?|cada|cuáles (?:son|fueron)|qué \w+s|quiénes|elenca\w*|tutt[ie] (?:i|le|gli))\b",
    r"列出|列举|列一下|所有|全部|哪些|每(?:个|一)|逐(?:一|条)|有哪几|都有|都(?:是)?谁|哪几|分别|リスト|一覧|すべて|全て|全部|列挙|挙げ|それぞれ|誰と誰|何と何|どんな.{1,20}がありますか|全員",
)
#: Words that ask for one thing.
_ASKS: Final = _compile_any(
    r"\b(?:who|whom|whose|when|where|which|how|what|why|is|are|was|were|does|do|did|has|have|can|may|must|will|should)\b",
    r"\b(?:wer|wem|wen|wessen|wann|wo|wohin|woher|welche[rsmn]?|wie|was|warum|wieso|ist|sind|war|gilt|darf|muss|hat|kann|gibt)\b",
    r"\b(?:qui|quand|où|quel(?:le)?s?|combien|que|quoi|pourquoi|est-ce|depuis)\b|\bqu'",
    r"\b(?:quién(?:es)?|cuándo|dónde|cuál|cuánt[oa]s?|qué|por qué|cómo)\b|¿",
    r"\b(?:chi|quando|dove|quale|quanto|quanti|perché|quem|onde|qual|quantos?|wanneer|waar|hoeveel|кто|когда|где|сколько)\b",
    r"谁|何时|什么|哪|多(?:少|久|长|高|大|远)|几(?:点|号|月|天|个|楼)|为什么|是不是|吗|呢",
    r"誰|いつ|どこ|どの|何|いくら|どれ|なぜ|どうして|ですか|ますか|でしょうか|か？|か。",
)
#: Words that prescribe a form, so that no form of ours may be asked for.
_FORM: Final = _compile_any(
    r"\b(?:table|bullets?|bullet points|sentences?|words|lines?|paragraphs?|only|exactly|format|markdown|heading|step by step|numbered)\b",
    r"\b(?:tabelle|stichpunkt\w*|sätzen?|satz|wörtern?|zeilen?|absätz\w*|nur|genau|schritt für schritt)\b",
    r"\b(?:tableau|puces|phrases?|mots|lignes?|seulement|uniquement|exactement|étape par étape)\b",
    r"\b(?:tabla|viñetas|frases?|palabras|líneas?|sólo|solamente|exactamente|únicamente)\b",
    r"表格|句话|个字|只(?:要|给|写|回答|用)|一行|分步|表形式|表で|箇条書き|文で|字以内|だけで|のみ|行で",
)
#: An opening that asks for one thing of a text whose name would tell of another kind ("Who wrote the summary?").
_OPENS: Final = _compile_any(
    r"^(?:and |so |please |tell me |do you know |could you (?:tell|say) (?:me )?)*(?:who|whom|whose|when|where|why|how (?:much|long|old|often|far|late)|what|which|does|do|did|is|was|has|in which)\b",
    r"^(?:und |sag mir |weißt du,? )*(?:wer|wem|wen|wann|wo|wohin|was (?:kostet|steht|sagt|nennt|ist|war|bedeutet)|welche[rsmn]?|wie (?:hoch|lange?|alt|teuer|heißt|viel)|hat|ist|war|in welche[rm])\b",
    r"^(?:et |dis-moi )*(?:qui|quand|où|combien (?:coûte|vaut)|quel(?:le)? (?:est|prix|date)|à quel|de quand|que dit|est-ce que)\b",
    r"^(?:y )?¿?(?:quién|cuándo|dónde|cuál es|cuánto (?:cuesta|vale)|qué (?:dice|precio|fecha|día)|a qué|de cuándo|en qué)\b",
    r"(?:谁|什么时候|多少钱|几号|哪天|哪里|是多少).{0,4}[？?]?$|(?:里|中|上)(?:写|说|提到|给出)",
    r"(?:誰|いつ|どこ|いくら|何日|何時)(?:です|でした|に|が|か|ま)?.{0,6}[？?。]?$|は誰|はいつ|はどこ|はいくら",
)
#: Names of texts, after such an opening.
_NAMES: Final = _compile_any(
    r"\b(?:(?:the|this|that|our|my|an?|executive|attached|in|of) )+(?:\w+ )?(?:summary|list|overview|translation|comparison|code|letter|e-?mail|table|digest|total)\b",
    r"\b(?:zusammenfassung|übersetzung|liste|überblick|vergleich|tabelle|brief|e-?mail|code)\b",
    r"\b(?:le|la|du|au|un|une) (?:résumé|traduction|liste|comparaison|lettre|tableau|code)\b",
    r"\b(?:el|la|del|al|un|una) (?:resumen|traducción|lista|comparación|carta|tabla|código)\b",
    r"摘要|总结|清单|列表|译文|概述|邮件|要約|リスト|一覧|翻訳|概要|まとめ|メール|手紙",
)

_ORDER: Final[tuple[tuple[Kind, re.Pattern[str]], ...]] = (
    ("code", _CODE),
    ("rewrite", _REWRITE),
    ("extract", _EXTRACT),
    ("summarise", _SUMMARISE),
    ("compare", _COMPARE),
    ("aggregate", _AGGREGATE),
    ("list", _LIST),
)
#: Characters of a question that are looked at: the rest of a long one is a text that came with it.
_LONGEST: Final = 600


def kind_of(question: str) -> Kind:
    """Return which kind of answer a question wants.

    >>> [kind_of(each) for each in ("When was the harbour built?", "List all boats.", "Fasse den Brief zusammen.")]
    ['fact', 'list', 'summarise']
    """
    asked = question.strip()[:_LONGEST]
    if _OPENS.search(asked):
        asked = _NAMES.sub(" ", asked)
    for kind, words in _ORDER:
        if words.search(asked):
            return kind
    return "fact" if _ASKS.search(asked) and not _FORM.search(asked) else "other"


def prescribes_form(question: str) -> bool:
    """Test if a question says which form its answer is to have."""
    return _FORM.search(question[:_LONGEST]) is not None
