"""Recognise sentences of an answer that evidence can neither carry nor contradict: greetings, questions, advice."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from batos.memory.segmentation import sentence_spans

#: The reason that a sentence is not checked. `language`: the answer is in a language that no document is in, and words
#: alone cannot compare the two.
Uncheckable: TypeAlias = Literal[
    "no_content",
    "code",
    "heading",
    "question",
    "greeting",
    "letter",
    "refusal",
    "offer",
    "nothing_found",
    "lead_in",
    "advice",
    "no_evidence",
    "language",
]

_QUESTION = re.compile(r"[?？؟;՞][\"'”’»)\]」』）*_]*\s*\Z")
_GREEK = re.compile("[\u0370-\u03ff]")
_HEADING = re.compile(r"\*{2}[^*\n]{1,80}\*{2}:?\s*\Z|__[^_\n]{1,80}__:?\s*\Z")
_LEAD_IN = re.compile(r"[:：]\s*\Z")

#: The beginnings of greetings, thanks, closings and offers of help.
_GREETING = re.compile(
    r"(?:hello|hi|hey|good (?:morning|afternoon|evening|day)|thanks(?! to)|thank you|you(?:'|’)re welcome"
    r"|i hope (?:this|that|it)"
    r"|hope (?:this|that)|let me know|please let me know|feel free|i(?:'|’| a)m (?:happy|glad) to|happy to|glad to"
    r"|i can help|goodbye"
    r"|bye|best regards|i apologi[sz]e|my apologies|have a (?:good|nice)"
    r"|hallo|guten (?:tag|morgen|abend)|servus|moin|grüß|vielen dank|danke|bitte sehr|ich hoffe|ich helfe|viele grüße"
    r"|tut mir leid"
    r"|melde dich|melden sie sich"
    r"|bonjour|bonsoir|salut|merci|avec plaisir|j(?:'|’)espère|n(?:'|’)hésitez|désolé|je vous en prie|au revoir"
    r"|hola|buenos días|buenas (?:tardes|noches)|gracias(?! a)|espero que|de nada|lo siento|adiós"
    r"|ciao|buongiorno|buonasera|grazie(?! a)|prego|spero che|mi dispiace|olá|bom dia|boa (?:tarde|noite)|obrigad[oa]"
    r"|hoi|goedemorgen|goedemiddag|bedankt|dank je|graag gedaan)\b"
    r"|(?:こんにちは|こんばんは|おはよう|ありがとう|どういたしまして|はじめまして|すみません|申し訳|お役に立)"
    r"|(?:你好|您好|谢谢|謝謝|不客气|很高兴|希望这|抱歉|对不起|안녕|감사|고맙|죄송)"
    r"|(?:مرحبا|أهلا|اهلا|السلام عليكم|شكرا|عفوا|بكل سرور|آمل|أتمنى|آسف|صباح الخير|مساء الخير)"
    r"|(?:привет|здравствуй|добр(?:ый|ое) |спасибо|надеюсь|извините)",
    re.IGNORECASE,
)
#: Words that are a whole sentence when they stand alone.
_INTERJECTION = re.compile(
    r"(?:sure|of course|certainly|absolutely|gladly|great|welcome|sorry|okay|all right|natürlich|selbstverständlich"
    r"|gerne?|klar|bien sûr"
    r"|d(?:'|’)accord|claro|por supuesto|certo|certamente|natuurlijk|もちろん(?:です)?|はい|いいえ|当然|是的|不是"
    r"|물론(?:입니다)?|네|بالطبع|نعم|لا|конечно"
    r"|да|нет)[\s!.,。！…]*",
    re.IGNORECASE,
)
#: A statement that nothing was found, or that one does not know.
_NOTHING_FOUND = re.compile(
    r"\b(?:(?:no|not enough|insufficient) (?:information|mention|evidence|answer|documents?|details?|passages?|data)"
    r"|(?:do|does|did|is|are|was|were|could|can)(?:n(?:'|’)t| ?not) (?:\w+ ){0,2}?(?:say|state|mention|tell|specify"
    r"|specified|stated|mentioned|know|find|found|answer|provide[ds]?|indicate)"
    r"|(?:text|document|passage|source|file|letter|note|table|lease|contract|agreement|minute|plan|invoice|statute|report)s?"
    r" (?:do|does|did)(?:n(?:'|’)t| not)"
    r"|nothing (?:was|is|could be) (?:found|said|known)|cannot be (?:found|answered|determined)"
    r"|unable to (?:find|answer|determine)"
    r"|(?:text|document|passage|source|file|letter|note|table|lease|contract|agreement|minute|plan|invoice|statute|data)s?"
    r" (?:gives?|says?|names?|states?|holds?|has|have|lists?|contains?|mentions?|shows?|includes?)"
    r" (?:no|nothing|neither)\b"
    r"|(?:is|are) not (?:in|part of) (?:the|your|this) (?:\w+ )?(?:text|document|file|note|letter)s?"
    r"|(?:could|can)(?:n(?:'|’)t| ?not) (?:\w+ )?(?:find|see|tell)"
    r"|n(?:'|’)(?:indique|est|a|évoque|apparaît|y a)\w* (?:pas|rien|nulle part)|geht (?:\w+ ){0,4}?nicht hervor"
    r"|steht (?:das |dazu |darin |da |hier )?nicht|enthält (?:\w+ ){0,3}?(?:keine?n?|nichts)"
    r"|no (?:consta|aparece|figura|da|incluye)|niet (?:in (?:de|het)|te vinden)"
    r"|non (?:\w+ )?(?:riporta|indicat\w|compare|fornisce)"
    r"|nichts (?:gefunden|dazu|darüber)"
    r"|nicht (?:\w+ )?(?:erwähnt|angegeben|gefunden|genannt|bekannt|enthalten|beantworten)"
    r"|keine (?:angaben?|informationen?|antwort|hinweise?)|ich weiß (?:es |das )?nicht|steht nicht (?:im|in)"
    r"|aucune (?:information|mention|réponse)"
    r"|ne (?:\w+ ){0,2}?disent (?:pas|rien)|no lo dicen|non lo dicono|não o dizem"
    r"|ne (?:\w+ )?(?:mentionne|précise|parle|figure|dit|contient|indique|sais|trouve|donne)\w* (?:pas|rien)"
    r"|rien (?:n(?:'|’)a été|n(?:'|’)est trouvé)"
    r"|no (?:se )?(?:menciona|dice|indica|especifica|encontr\w*|sé|contiene|hay (?:información|datos))"
    r"|ninguna (?:información|mención)|non (?:\w+ )?(?:dice|menziona|indica|so|contiene|trovat\w)"
    r"|nessuna (?:informazione|menzione)|não (?:\w+ )?(?:menciona|diz|indica|sei|contém|há|encontr\w*)"
    r"|nenhuma (?:informação|menção)|niet (?:\w+ )?(?:vermeld|genoemd|gevonden|bekend)"
    r"|geen (?:informatie|antwoord))\b"
    r"|(?:記載|書かれて|言及|情報|見つか)[^。]{0,12}(?:ありません|ない|なかった|いません|りません)"
    r"|わかりません|分かりません"
    r"|(?:没有|未)(?:提到|提及|找到|说明|说|提供|相关)|不知道|無法|无法(?:回答|确定|找到)|찾을 수 없|모르|정보가 없"
    r"|\b(?:لا|لم|لن) (?:يوجد|توجد|يذكر|تذكر|أجد|أعرف|يرد|نجد|يحتوي|يقل)"
    r"|\bне (?:\w+ )?(?:упомина|указан|сказано|найден|нашл|знаю|говорит|содерж)|\bнет (?:информации|данных|сведений)",
    re.IGNORECASE,
)
#: A refusal, in the first person.
_REFUSAL = re.compile(
    r"(?:\bi(?:'|’)?(?:m| am) (?:so )?(?:sorry|afraid|unable|not able)"
    r"|\bi (?:cannot|can(?:'|’)t|can not|won(?:'|’)t|will not|am not (?:able|allowed|comfortable)) (?:\w+ )?"
    r"(?:help|assist|do|write|provide|fulfil\w*|comply|answer|create|support|with)"
    r"|\b(?:as|i(?:'|’)?m (?:only |just )?|i am (?:only |just )?) ?an ai(?: (?:language )?model| assistant)?\b"
    r"|\bi (?:have no |do(?:n(?:'|’)t| not) have (?:any )?)access to"
    r"|\b(?:als|ich bin (?:nur )?eine) ki\b|\bich habe keinen zugriff auf|\ben tant qu(?:'|’)ia\b|\bcomo (?:una )?ia\b"
    r"|\b(?:dabei|damit|das|dir|ihnen|dies\w*) kann ich (?:\w+ )?nicht"
    r"|ich kann (?:\w+ ){0,3}?nicht (?:\w+ )?(?:helfen|erfüllen|schreiben|nachkommen)|tut mir leid"
    r"|je ne peux pas|je suis désolé|désolée?,|lo siento|no puedo (?:ayudar|hacer|cumplir|escribir|proporcionar)"
    r"|mi dispiace|non posso (?:aiutar|far|scriver|soddisfar|fornir)|lamento|não posso|het spijt me"
    r"|ik kan (?:\w+ )?niet (?:helpen|voldoen)|извините|к сожалению, я не|я не могу)"
    r"|(?:抱歉|对不起|我无法|我不能|申し訳|できかねます|お手伝いできません|お答えできません)",
    re.IGNORECASE,
)
#: An offer of the one who answers to do more.
_OFFER = re.compile(
    r"\A\W*(?:i (?:can|could|will|would) (?:also|gladly|then|happily|be happy)"
    r"|if you (?:like|want|wish|need|prefer|have)|would you like"
    r"|shall i|do you want|just (?:ask|tell|let)|soll ich|möchtest du|möchten sie"
    r"|wenn (?:du|sie) (?:möchte\w*|will\w*|woll\w*|mag\w*)"
    r"|gern(?:e)? (?:geschehen|kann)|ich kann (?:auch|gern)|falls (?:du|sie)|souhaite[sz]?|voulez|veux-tu"
    r"|je peux (?:aussi|également)|si (?:vous|tu) (?:le )?(?:voulez|souhaite\w*|veux)"
    r"|si (?:quiere\w*|desea\w*|necesita\w*)|¿(?:quiere|desea)|puedo también"
    r"|se (?:vuoi|desidera\w*|vuole|quiser\w*)|posso anche|posso também|als (?:je|u) (?:wilt|wil)|ik kan ook"
    r"|zal ik|если (?:вы )?хотите)\b"
    r"|(?:如果您?需要|需要我|要不要我|よろしければ|ご希望でしたら)",
    re.IGNORECASE,
)
#: Advice to the reader, which tells what to do and not what is.
_ADVICE = re.compile(
    r"\A\W*(?:please|try|consider|check|make sure|ensure|remember|note that you|see|ask|take|keep in mind|don(?:'|’)t"
    r"|do not|avoid|start"
    r" (?:by|with)|begin (?:by|with)|you (?:should|could|can|may|might|must|need|want)|i(?:'|’)?d? (?:recommend"
    r"|suggest|advise|would)|we"
    r" (?:recommend|suggest)|it is (?:best|advisable|recommended)|bitte|versuchen? sie|versuche|achten? sie"
    r"|prüfen? sie|beachte|ich"
    r" (?:empfehle|rate)|sie (?:sollten|können|müssen)|du (?:solltest|kannst|musst)|es empfiehlt sich|veuillez"
    r"|essayez|vérifiez|pensez"
    r" à|je (?:vous )?(?:recommande|conseille|suggère)|vous (?:devriez|pouvez|devez)|tu (?:devrais|peux|dois)|il est"
    r" (?:recommandé|conseillé)|por favor|intente|pruebe|verifique|(?:le |te )?(?:recomiendo|sugiero|aconsejo)"
    r"|(?:usted )?(?:debería|puede)"
    r"|deberías|puedes|si prega|provi|(?:ti |le )?consiglio|dovrebbe|dovresti|por favor|tente|recomendo|sugiro"
    r"|você (?:deve|pode)"
    r"|probeer|ik raad|u (?:kunt|moet)|je (?:kunt|moet))\b"
    r"|(?:てください|て下さい|お勧め|おすすめ|ましょう|べきです|方がいい|ほうがいい|と良いでしょう)"
    r"|\A(?:请|請|建议|您?可以|你可以|你应该|您应该)|(?:세요|십시오|좋습니다)[.。]?\Z"
    r"|\A(?:من فضلك|يرجى|أنصح|ننصح|أقترح|يمكنك|عليك|يجب عليك|حاول|تأكد)|\A(?:пожалуйста, |попробуйте|советую"
    r"|рекомендую|вам следует)",
    re.IGNORECASE,
)

#: The beginning of a sentence that only says that an answer or a text follows.
_FRAME = re.compile(
    r"(?:(?:so|therefore|thus|yes|no)[,:]? )?(?:(?:the|your|my) (?:\w+ )?answer(?: to (?:the|this"
    r"|your) question(?: (?:about|of) [^:,]{1,80}?)?)?"
    r" (?:is|was|would be)(?: that)?"
    r"|(?:the|this) (?:text|document|passage|source|file|question)s? (?:\w+ )?(?:says?|states?|shows?|tells?(?: us)?"
    r"|mentions?|explains?|indicates?"
    r"|is asking about)(?: that)?"
    r"|(?:according to|based on|as stated in|in) (?:the|this) (?:\w+ )?(?:text|document|passage|source|file)s?"
    r"|die antwort (?:auf die frage )?(?:ist|lautet)|(?:laut|nach|gemäß) (?:dem|der|den) (?:text|dokument|dokumente?n"
    r"|quelle)"
    r"|la réponse (?:à (?:la|cette) question )?est|(?:selon|d(?:'|’)après) le (?:texte|document)"
    r"|la respuesta (?:a (?:la|esta) pregunta )?es|según el (?:texto|documento)"
    r"|la risposta (?:alla domanda )?è|secondo il (?:testo|documento))\b[\s:,]*"
    r"|(?:答えは|回答は|この質問の答えは|テキストによると、?|文書によると、?|答案是|根据(?:文本|文件"
    r"|文章)，?)[:：]?\s*"
    r"|(?:الجواب هو|الإجابة هي|وفقا للنص،?|وفقًا للنص،?)[:\s]*",
    re.IGNORECASE,
)

#: Further forms of sentences, in the order in which they are looked for.
_MANNERS: tuple[tuple[Uncheckable, re.Pattern[str]], ...] = (
    ("nothing_found", _NOTHING_FOUND),
    ("refusal", _REFUSAL),
    ("offer", _OFFER),
    ("advice", _ADVICE),
    ("lead_in", _LEAD_IN),
)


def frame_length(sentence: str) -> int:
    """Return the length of the beginning of a sentence that only says that an answer or a text follows.

    >>> "The answer is: In 1961."[frame_length("The answer is: In 1961."):]
    'In 1961.'
    """
    found = _FRAME.match(sentence)
    return found.end() if found and found.end() < len(sentence) else 0


def is_question(sentence: str) -> bool:
    """Test if a sentence asks. A semicolon asks in Greek only."""
    return _QUESTION.search(sentence) is not None and (
        not sentence.rstrip().endswith(";") or bool(_GREEK.search(sentence))
    )


def declines(text: str) -> bool:
    """Test if a text says nothing but that nothing was found, or that it refuses."""
    said = [text[start:end] for start, end in sentence_spans(text)]
    return bool(said) and all(manner(each, each) in ("nothing_found", "refusal") for each in said)


def manner(sentence: str, line: str) -> Uncheckable | None:
    """Return the reason that a sentence is not one to check, by its form; None if it states something.

    `line` is the line or item that the sentence stands in, with its marks, which tells a heading.
    """
    if is_question(sentence):
        return "question"
    if line.lstrip().startswith("#") or _HEADING.fullmatch(sentence.strip()):
        return "heading"
    if _GREETING.match(sentence.lstrip(" *_\"'“«")) or _INTERJECTION.fullmatch(sentence.strip(" *_")):
        return "greeting"
    whole = line if line.strip().endswith(sentence.strip()) else sentence
    if is_form(whole) or is_form(sentence):
        return "letter"
    return next((reason for reason, pattern in _MANNERS if pattern.search(sentence)), None)


# -- the forms of a letter, and the requests for a text: neither states anything that evidence could carry


_SUBJECT = (
    r"(?:subject|re|betreff|betrifft|objet|asunto|oggetto|assunto|onderwerp|тема|件名|主题|主題|to|from|an|von|à|de"
    r"|para|da|aan"
    r"|cc)"
)
#: A line that is no statement: a subject line, a salutation, a closing, or a placeholder.
_FORM = re.compile(
    rf"^[^\S\n]*\**(?:{_SUBJECT}\**\s?[:：][^\n]*"
    r"|(?:dear|hello|hi|hey|sehr geehrte[rs]?|liebe[rs]?|guten tag|hallo|chère?s?|bonjour|madame|monsieur"
    r"|estimad[oa]s?"
    r"|querid[oa]s?|hola|gentile|egregi[oa]|car[oaie]|caro|prezad[oa]s?|geachte|beste|уважаем\w+|здравствуйте"
    r"|尊敬的|亲爱的)\b"
    r"(?:[^\n.!?\d]|(?<=\b[a-zA-Z]{2})\.|(?<=\b[a-zA-Z]{3})\.){0,60}[,!:，！：]?(?=\n|\Z)"
    r"|(?:(?:kind|best|warm|with kind|with best|many|warmest|kindest) regards|best wishes|best|yours(?: \w+)?"
    r"|sincerely(?: yours)?|cheers"
    r"|respectfully|mit (?:freundlichen|besten|lieben|herzlichen) grüßen|(?:freundliche|beste|liebe|viele"
    r"|herzliche) grüße|hochachtungsvoll"
    r"|cordialement|bien cordialement|sincères salutations|salutations[^\n]{0,30}|amicalement"
    r"|(?:un )?(?:cordial )?saludos?[^\n]{0,20}"
    r"|atentamente|cordiali saluti|distinti saluti|un saluto|atenciosamente|cumprimentos"
    r"|met vriendelijke groet(?:en)?|groeten"
    r"|с уважением|此致|敬礼|敬具)\**[,.!，。]?(?:\n[^\S\n]*[^\n]{1,60})?(?=\n|\Z)"
    r"|\[[^\]\n]{1,60}\][,.]?(?=\n|\Z))",
    re.IGNORECASE | re.MULTILINE,
)
#: A request for a text of the model's own, in which much stands that no document has.
_ASKS_FOR_TEXT = re.compile(
    r"\b(?:write|draft|compose|rewrite|rephrase|turn (?:this|the|it)\b.{0,60}\binto|make (?:this|it)|translate|plan"
    r"|suggest|poem|story"
    r"|e-?mail|letter|text message|post|speech"
    r"|schreib\w*|verfass\w*|formulier\w*|entw[iu]rf\w*|übersetz\w*|dichte|brief\b(?= an)|umschreiben"
    r"|schlage? \w+ vor"
    r"|écri[sv]\w*|rédige\w*|réécri\w*|reformul\w*|tradui\w*|courriel|propose"
    r"|escrib\w*|redact\w*|reescrib\w*|traduc\w*|traduz\w*|carta|correo"
    r"|scriv\w*|riscriv\w*|traduci|lettera|schrijf\w*|herschrijf\w*|vertaal\w*|escrev\w*|reescrev\w*|redij\w*"
    r"|напиши\w*|перепиши\w*|перевед\w*|составь\w*)\b"
    r"|写(?!作)|撰写|改写|翻译|起草|書いて|書き直|翻訳して|作成して",
    re.IGNORECASE,
)


def without_forms(text: str) -> str:
    """Remove subject lines, salutations, closings with the name below, and placeholders on lines of their own.

    >>> without_forms("Dear Ms Lund,\\n\\nthe lamp burns.\\n\\nKind regards,\\nAnna").strip()
    'the lamp burns.'
    """
    return _FORM.sub("", text)


def is_form(text: str) -> bool:
    """Test if a sentence is nothing but such a line, or several of them."""
    return _FORM.match(text) is not None and not without_forms(text).strip()


def asks_for_text(question: str) -> bool:
    """Test if a question asks for a text of the model's own: a letter, a poem, a plan, other words for something."""
    return _ASKS_FOR_TEXT.search(question) is not None
