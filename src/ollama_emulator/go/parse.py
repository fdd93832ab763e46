"""Parse a Go template into a tree, and refuse a malformed one in the words of Go's parser."""

from __future__ import annotations

import re

from ollama_emulator.go.lex import Lexer, Malformed, TemplateToken, quote
from ollama_emulator.go.literals import number, unescape
from ollama_emulator.go.template_functions import ADDED, OWN
from ollama_emulator.go.tree import (
    ActionNode,
    BranchNode,
    CallNode,
    ChainNode,
    CommandNode,
    FieldNode,
    MarkNode,
    Node,
    PipeNode,
    TextNode,
    Tree,
    VariableNode,
    WordNode,
    empty,
)

FUNCTIONS = frozenset(("and", "or", *OWN, *ADDED))
_DEEPEST = 100
_ESCAPE = re.compile(r"\\(?:[abfnrtv\\\"']|[0-7]{3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})")


def parse(text: str) -> Tree:
    """Return the tree of a template's text. Raises: Malformed: the template is wrong; the message is Go's."""
    return _Parser(text).tree()


class _Parser:
    """A recursive descent over the tokens; a name that begins with `_peek` leaves the token to be read again."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = Lexer(text).run()
        self._at = 0
        self._seen = 0
        self._variables = ["$"]
        self._loops = 0
        self._deep = 0
        self._began = 0  # line of the action being read
        self._defined: dict[str, list[Node]] = {}

    def tree(self) -> Tree:
        root: list[Node] = []
        while self._peek().kind != "eof":
            if self._peek().kind == "left" and self._after_blank(self._at + 1).kind == "define":
                self._next()
                self._next_word()
                self._definition()
                continue
            node = self._piece()
            if isinstance(node, MarkNode) and node.word in ("end", "else"):
                raise self._error(f"unexpected {node}")
            root.append(node)
        return Tree(self._text, root, self._defined)

    # tokens

    def _next(self) -> TemplateToken:
        """Take the next token; after the end the last one is returned again."""
        token = self._tokens[min(self._at, len(self._tokens) - 1)]
        self._at += 1
        self._seen = max(self._seen, self._at)
        return token

    def _peek(self) -> TemplateToken:
        self._seen = max(self._seen, self._at + 1)
        return self._tokens[min(self._at, len(self._tokens) - 1)]

    def _after_blank(self, at: int) -> TemplateToken:
        """Return the first token from `at` that is no blank, without taking it."""
        while at < len(self._tokens) and self._tokens[at].kind == "space":
            at += 1
        self._seen = max(self._seen, at + 1)
        return self._tokens[min(at, len(self._tokens) - 1)]

    def _next_word(self) -> TemplateToken:
        """Take the next token that is no blank, and return it."""
        while (token := self._next()).kind == "space":
            pass
        return token

    def _peek_real(self) -> TemplateToken:
        while self._peek().kind == "space":
            self._next()
        return self._peek()

    def _error(self, text: str) -> Malformed:
        """Return the error of the last token that was seen, with its line."""
        last = self._tokens[min(max(self._seen, 1), len(self._tokens)) - 1]
        return Malformed(f"template: :{last.line}: {text}")

    def _unexpected_token(self, token: TemplateToken, context: str) -> Malformed:
        """Return the error for a token that cannot stand here, in Go's words."""
        if token.kind != "error":
            return self._error(f"unexpected {token} in {context}")
        extra = ""
        if self._began and self._began != token.line:
            extra = f" in action started at :{self._began}"
            if token.text.endswith(" action"):
                extra = extra[len(" in action") :]
        return self._error(f"{token}{extra}")

    def _expect(self, kind: str, context: str) -> TemplateToken:
        """Take the next token that is no blank. Raises: Malformed: it is of another kind."""
        token = self._next_word()
        if token.kind != kind:
            raise self._unexpected_token(token, context)
        return token

    # structure

    def _piece(self) -> Node:
        """Read a text or an action."""
        token = self._next_word()
        if token.kind == "text":
            return TextNode(token.at, token.text)
        if token.kind != "left":
            raise self._unexpected_token(token, "input")
        self._began = token.line
        node = self._action()
        self._began = 0
        return node

    def _pieces(self) -> tuple[list[Node], MarkNode]:
        """Read nodes up to the next `end` or `else` of this level; return them and that mark."""
        nodes: list[Node] = []
        while self._peek_real().kind != "eof":
            node = self._piece()
            if isinstance(node, MarkNode) and node.word in ("end", "else"):
                return nodes, node
            nodes.append(node)
        raise self._error("unexpected EOF")

    def _action(self) -> Node:
        """Parse the action after `{{`: a branch, a call, a definition, or a pipeline."""
        token = self._next_word()
        if token.kind in ("if", "range", "with"):
            return self._branch(token.kind, token.at)
        if token.kind in ("break", "continue"):
            return self._leave(token)
        if token.kind in ("template", "block"):
            return self._call(token)
        if token.kind == "end":
            self._expect("right", "end")
            return MarkNode(token.at, "end")
        if token.kind == "else":
            if self._peek_real().kind not in ("if", "with"):
                self._expect("right", "else")
            return MarkNode(token.at, "else")
        self._at -= 1
        return ActionNode(self._peek().at, self._pipe("command", "right"))

    def _leave(self, token: TemplateToken) -> Node:
        """Parse `break` or `continue`. Raises: Malformed: there is no `range` around it."""
        following = self._next_word()
        if following.kind != "right":
            raise self._unexpected_token(following, f"{{{{{token.kind}}}}}")
        if not self._loops:
            raise self._error(f"{{{{{token.kind}}}}} outside {{{{range}}}}")
        return MarkNode(token.at, token.kind)

    def _branch(self, word: str, at: int) -> BranchNode:
        """Read an `if`, `range` or `with` up to its `end`."""
        self._enter()
        known = len(self._variables)
        pipe = self._pipe(word, "right")
        self._loops += word == "range"
        body, end = self._pieces()
        self._loops -= word == "range"
        other: list[Node] | None = None
        if end.word == "else":
            following = self._peek()
            if following.kind == word and word in ("if", "with"):
                self._next()
                other = [self._branch(word, following.at)]
            else:
                other, end = self._pieces()
                if end.word != "end":
                    raise self._error(f"expected end; found {end}")
        del self._variables[known:]
        self._deep -= 1
        return BranchNode(at, word, pipe, body, other)

    def _enter(self) -> None:
        self._deep += 1
        if self._deep > _DEEPEST:
            raise self._error("max expression depth exceeded")

    def _call(self, token: TemplateToken) -> Node:
        """Parse `template` or `block`, with the name and the pipeline that follow."""
        context = f"{token.kind} clause"
        named = self._next_word()
        if named.kind not in ("string", "raw"):
            raise self._unexpected_token(named, context)
        name = self._unquote(named)
        if token.kind == "block":
            pipe: PipeNode | None = self._pipe(context, "right")
            self._define(name, context)
            return CallNode(named.at, name, pipe)
        if self._peek_real().kind == "right":
            self._next()
            return CallNode(named.at, name, None)
        return CallNode(named.at, name, self._pipe(context, "right"))

    def _definition(self) -> None:
        """Parse `define` with its name and body."""
        named = self._next_word()
        if named.kind not in ("string", "raw"):
            raise self._unexpected_token(named, "define clause")
        name = self._unquote(named)
        self._expect("right", "define clause")
        self._define(name, "define clause")

    def _define(self, name: str, context: str) -> None:
        """Parse the body of a definition up to its `end`; an empty one does not replace another of that name."""
        outer, self._variables = self._variables, ["$"]
        loops, self._loops = self._loops, 0
        self._enter()
        nodes, end = self._pieces()
        if end.word != "end":
            raise self._error(f"unexpected {end} in {context}")
        self._deep -= 1
        self._variables, self._loops = outer, loops
        known = self._defined.get(name)
        if known is None or empty(known):
            self._defined[name] = nodes
        elif not empty(nodes):
            raise self._error(f"template: multiple definition of template {quote(name)}")

    # pipelines

    def _pipe(self, context: str, end: str) -> PipeNode:
        """Read a pipeline up to a token of the kind `end`; `context` names it in errors."""
        pipe = PipeNode(self._peek_real().at)
        while self._declares(pipe, context):
            pass
        while True:
            token = self._next_word()
            if token.kind == end:
                self._check(pipe, context)
                return pipe
            if not token.operand:
                raise self._unexpected_token(token, context)
            self._at -= 1
            pipe.commands.append(self._command())

    def _declares(self, pipe: PipeNode, context: str) -> bool:
        """Add the declaration that begins here, if any, to `pipe`; return whether a range declares a second one."""
        variable = self._peek_real()
        if variable.kind != "variable":
            return False
        start = self._at
        self._next()
        following = self._peek_real()
        comma = following.kind == "char" and following.text == ","
        if following.kind not in ("assign", "declare") and not comma:
            self._at = start
            return False
        self._next_word()
        pipe.assigns = following.kind == "assign"
        pipe.declared.append(VariableNode(variable.at, (variable.text,)))
        self._variables.append(variable.text)
        if not comma:
            return False
        if context == "range" and len(pipe.declared) < 2:
            if self._peek_real().kind in ("variable", "right", ")"):
                return True
            raise self._error("range can only initialize variables")
        raise self._error(f"too many declarations in {context}")

    def _check(self, pipe: PipeNode, context: str) -> None:
        """Check that a pipeline has commands, and that all but the first can be executed.

        Raises: Malformed: they are not.
        """
        if not pipe.commands:
            raise self._error(f"missing value for {context}")
        for stage, command in enumerate(pipe.commands[1:], 2):
            first = command.args[0]
            if isinstance(first, WordNode) and first.kind != "function":
                raise self._error(f"non executable command in pipeline stage {stage}")

    def _command(self) -> CommandNode:
        """Parse one command of a pipeline: operands with blanks between them."""
        command = CommandNode(self._peek_real().at)
        while True:
            self._peek_real()
            operand = self._operand()
            if operand is not None:
                command.args.append(operand)
            token = self._next()
            if token.kind == "space":
                continue
            if token.kind in ("right", ")"):
                self._at -= 1
            elif token.kind != "pipe":
                raise self._unexpected_token(token, "operand")
            break
        if not command.args:
            raise self._error("empty command")
        return command

    def _operand(self) -> Node | None:
        """Read a term with the fields behind it; return None if no term begins here."""
        node = self._term()
        if node is None or self._peek().kind != "field":
            return node
        at = self._peek().at
        names: list[str] = []
        while self._peek().kind == "field":
            names.append(self._next().text[1:])
        if isinstance(node, FieldNode):
            return FieldNode(at, (*node.names, *names))
        if isinstance(node, VariableNode):
            return VariableNode(at, (*node.names, *names))
        if isinstance(node, WordNode) and node.kind != "function":
            raise self._error(f"unexpected . after term {quote(str(node))}")
        return ChainNode(at, node, tuple(names))

    def _term(self) -> Node | None:
        """Read one argument without its fields; return None if no argument begins here."""
        token = self._next_word()
        if token.kind == "identifier":
            if token.text not in FUNCTIONS:
                raise self._error(f"function {quote(token.text)} not defined")
            return WordNode(token.at, "function", token.text)
        if token.kind == "variable":
            if token.text not in self._variables:
                raise self._error(f"undefined variable {quote(token.text)}")
            return VariableNode(token.at, (token.text,))
        if token.kind == "field":
            return FieldNode(token.at, (token.text[1:],))
        if token.kind == "(":
            self._enter()
            pipe = self._pipe("parenthesized pipeline", ")")
            self._deep -= 1
            return pipe
        word = self._word(token)
        if word is None:
            self._at -= 1
        return word

    def _word(self, token: TemplateToken) -> WordNode | None:
        """Parse a constant or a name; return None for any other token."""
        if token.kind in (".", "nil"):
            return WordNode(token.at, "dot" if token.kind == "." else "nil", token.text)
        if token.kind == "bool":
            return WordNode(token.at, "bool", token.text, token.text == "true")
        if token.kind in ("string", "raw"):
            return WordNode(token.at, "string", token.text, self._unquote(token))
        if token.kind in ("number", "complex", "charconst"):
            return WordNode(token.at, "number", token.text, self._number(token))
        return None

    def _unquote(self, token: TemplateToken) -> str:
        """Return the text of a string constant. Raises: Malformed: an escape is invalid."""
        if token.kind == "raw":
            return token.text[1:-1].replace("\r", "")
        body = token.text[1:-1]
        if "\\" in _ESCAPE.sub("", body):
            raise self._error("invalid syntax")
        return unescape(body)

    def _number(self, token: TemplateToken) -> int | float | complex:
        """Return the value of a number or a character. Raises: Malformed: it is none."""
        if token.kind == "charconst":
            letter = token.text[1:-1]
            if "\\" in _ESCAPE.sub("", letter) or len(unescape(letter)) != 1:
                raise self._error(f"malformed character constant: {token.text}")
            return ord(unescape(letter))
        value = number(token.text)
        if value is None:
            raise self._error(f"illegal number syntax: {quote(token.text)}")
        return value
