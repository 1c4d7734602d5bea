/** What a hostile page or source could make a model write. */
import * as FastCheck from "effect/FastCheck"

/** Random texts of `pieces` and of any characters. */
export const written = (pieces: ReadonlyArray<string>) =>
  FastCheck.array(FastCheck.oneof(FastCheck.constantFrom(...pieces), FastCheck.string()), {
    maxLength: 30
  }).map((all) => all.join(""))

export const marks = [
  "**",
  "*",
  "_",
  "~~",
  "`",
  "[",
  "](",
  ")",
  "![",
  "<script>",
  "<img src=x onerror=1>",
  "[1]",
  "[9]"
]
export const lines = ["\n", "\n\n", "- ", "1. ", "# ", "> ", "|", " ", "word", "    ", "\\", "&lt;", "&#x3c;"]
export const addresses = [
  "javascript:alert(1)",
  "[a](javascript:alert(1))",
  "[a](data:text/html,x)",
  "[a](\tjavascript:alert(1))",
  "[a](&#106;avascript:alert(1))",
  "[a](//evil.example)",
  "![x](https://evil.example/a.png)",
  "<https://example.com/x>",
  "[a]: javascript:alert(1)\n",
  "[1]: https://example.com\n",
  "https://example.com",
  "a@b.example",
  "```\n",
  "\n| a | b |\n|---|---|\n"
]

/** Each would run, ask the network or cover the page if it were taken as HTML. */
export const elements = [
  "<script>ran()</script>",
  "<img src=https://evil.example/a.png onerror=ran()>",
  "<svg/onload=ran()>",
  "<svg><animate onbegin=ran() attributeName=x dur=1s>",
  "<iframe src=javascript:ran()></iframe>",
  "<iframe srcdoc='<script>parent.ran()</script>'>",
  '<link rel=stylesheet href="https://evil.example/a.css">',
  "<style>@import 'https://evil.example/a.css'; * { position: fixed; inset: 0 }</style>",
  '<div style="position:fixed;inset:0;background:url(https://evil.example/b)">',
  "<video autoplay src=https://evil.example/v onerror=ran()>",
  "<body onload=ran()>",
  "<input autofocus onfocus=ran()>",
  "<details open ontoggle=ran()>",
  "<math><mtext><table><mglyph><style><img src=x onerror=ran()>",
  "<noscript><p title='</noscript><img src=x onerror=ran()>'>",
  "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
  "<base href=https://evil.example/>",
  "<form action=https://evil.example/><button>",
  "![a](https://evil.example/a.png 'onerror=ran()')",
  "[a](javascript:ran())",
  "[a](https://evil.example/\"onmouseover='ran()')",
  "](javascript:ran())",
  "{{constructor.constructor('ran()')()}}",
  "${ran()}",
  "</div></div></main>",
  "<!--",
  "-->",
  "<![CDATA["
]

/** Each would make a column wider, or run over what stands beside it, if nothing held it. */
export const wide = [
  "w".repeat(400),
  "\u00A0wide".repeat(60),
  `https://example.com/${"path/".repeat(60)}`,
  `[${"link".repeat(80)}](https://example.com/)`,
  `\`${"code".repeat(80)}\``,
  `\n\`\`\`\n${"x".repeat(500)}\n\`\`\`\n`,
  `\n${"| a ".repeat(40)}|\n${"|---".repeat(40)}|\n${"| word ".repeat(40)}|\n`,
  `\n| ${"cell".repeat(60)} |\n|---|\n`,
  `\n${"> ".repeat(30)}deep\n`,
  `\n${"- ".repeat(30)}deep\n`,
  `\n${Array.from({ length: 20 }, (_, depth) => `${"   ".repeat(depth)}1. deep`).join("\n")}\n`,
  "\n999999999. far\n",
  `\n# ${"Heading".repeat(40)}\n`,
  "e\u0301\u0302\u0303\u0304".repeat(20),
  "\u202Eright to left\u202C",
  "\u2066\u2067\u2068",
  "\u{12031}\uFDFD".repeat(20),
  "عربي ".repeat(30),
  "漢字".repeat(80),
  "👨‍👩‍👧‍👦".repeat(40),
  "\u200B\u200D\uFEFF",
  "\u0000\u0007\u001B[31m"
]
