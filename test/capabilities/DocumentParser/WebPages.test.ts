/** What of web pages is content: as generators of documentation, editors of sites and libraries of components write them. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { strToU8 } from "fflate"
import { DocumentParser } from "../../../src/capabilities/DocumentParser.ts"
import { layerInline } from "../../../src/capabilities/DocumentParser/Inline.ts"
import { introduction, read, readsAll } from "./Pages.ts"

const answer = "<p>Open Billing and choose Cancel plan.</p>"
const asked = "How do I cancel?\n\nOpen Billing and choose Cancel plan."

describe("An answer that a page shows on request is content, with its question:", () => {
  readsAll({
    "in a hidden region that a button in a heading controls": [
      `<h3><button aria-expanded="false" aria-controls="a1" id="b1">How do I cancel?</button></h3>
       <div id="a1" role="region" aria-labelledby="b1" hidden>${answer}</div>
       <h3><button aria-expanded="false" aria-controls="a2">Do you refund?</button></h3>
       <div id="a2" hidden><p>Within 14 days.</p></div>`,
      `### ${asked}\n\n### Do you refund?\n\nWithin 14 days.`
    ],
    "in a term of a list, whose description is not displayed": [
      `<dl><dt><button type="button" aria-expanded="false" aria-controls="d1"><span>How do I cancel?</span><svg></svg></button>
       </dt><dd id="d1" style="display: none;">${answer}</dd></dl>`,
      asked
    ],
    "after a button of an accordion without roles": [
      `<button class="accordion">How do I cancel?</button><div class="panel">${answer}</div>`,
      asked
    ],
    "in a panel of an accordion that is not displayed": [
      `<div class="accordion"><button class="accordion-button">How do I cancel?</button>
       <div class="panel" style="display:none">${answer}</div></div>`,
      asked
    ],
    "in a component with an orientation": [
      `<div data-state="closed" data-orientation="vertical"><h3 data-orientation="vertical"><button type="button"
       aria-controls="radix-1" aria-expanded="false">How do I cancel?</button></h3>
       <div data-state="closed" id="radix-1" hidden="" role="region">${answer}</div></div>`,
      `### ${asked}`
    ],
    "in an element hidden from assistive technology": [
      `<div class="faq-item"><div role="button" aria-expanded="false" aria-controls="q1">How do I cancel?</div>
       <div id="q1" aria-hidden="true">${answer}</div></div>`,
      asked
    ],
    "in an element whose name is that of a menu": [
      `<div class="w-dropdown"><div class="w-dropdown-toggle" role="button" aria-controls="l1" aria-haspopup="menu"
       aria-expanded="false">How do I cancel?</div><nav class="w-dropdown-list" id="l1">${answer}</nav></div>`,
      asked
    ],
    "in a collapsed element of Bootstrap": [
      `<div class="accordion-item"><h2 class="accordion-header"><button class="accordion-button collapsed" type="button"
       data-bs-toggle="collapse" data-bs-target="#c1">How do I cancel?</button></h2>
       <div id="c1" class="accordion-collapse collapse"><div class="accordion-body">${answer}</div></div></div>`,
      `## ${asked}`
    ],
    "in details": [`<details><summary>How do I cancel?</summary>${answer}</details>`, asked]
  })
})

describe("Panels of tabs are content, each after the name of its tab:", () => {
  const both = "macOS\n\nRun brew install.\n\nWindows\n\nRun winget install."
  readsAll({
    "named by their tabs": [
      `<div role="tablist"><button role="tab" aria-controls="p1">macOS</button><button role="tab" aria-controls="p2">Windows
       </button></div><div role="tabpanel" id="p1"><p>Run brew install.</p></div>
       <div role="tabpanel" id="p2" hidden><p>Run winget install.</p></div>`,
      both
    ],
    "in the order of their tabs": [
      `<div class="tabs-container"><ul role="tablist"><li role="tab">macOS</li><li role="tab">Windows</li></ul>
       <div><div role="tabpanel"><p>Run brew install.</p></div><div role="tabpanel" hidden><p>Run winget install.</p></div>
       </div></div>`,
      both
    ],
    "made of fields and labels": [
      `<div class="tabbed-set tabbed-alternate"><input checked id="t1" type="radio"><input id="t2" type="radio">
       <div class="tabbed-labels"><label for="t1">macOS</label><label for="t2">Windows</label></div>
       <div class="tabbed-content"><div class="tabbed-block"><p>Run brew install.</p></div>
       <div class="tabbed-block"><p>Run winget install.</p></div></div></div>`,
      both
    ]
  })
})

describe("The name of an element does not make it an advertisement:", () => {
  readsAll({
    "sections that are named by their headings": [
      `<section id="error-codes"><h2>Error codes<a class="headerlink" href="#error-codes">¶</a></h2><p>E42 is a full disk.</p>
       </section><section id="next-steps"><h2>Next steps</h2><p>Read on.</p></section>
       <div class="section" id="loading-data"><h2>Loading data</h2><p>Call load.</p></div>`,
      "## Error codes\n\nE42 is a full disk.\n\n## Next steps\n\nRead on.\n\n## Loading data\n\nCall load."
    ],
    "cards, profiles and disclaimers": [
      `<div class="card-content"><h2>Basic</h2><p class="card-text">Basic costs 5 euros.</p></div>
       <div class="profile-card"><h2>Team</h2><p>Support is led from Vienna.</p></div>
       <div class="disclaimer"><p>Prices are without tax.</p></div>`,
      "## Basic\n\nBasic costs 5 euros.\n\n## Team\n\nSupport is led from Vienna.\n\nPrices are without tax."
    ],
    "words of a sentence": [
      `<p>By <span class="author">the team</span>: <span class="meta">12 euros</span> until <span class="date">31 March</span>.</p>`,
      "By the team: 12 euros until 31 March."
    ],
    "notes beside the text": [
      `<aside aria-label="Caution" class="starlight-aside"><p>Back up first.</p></aside><aside class="note"><p>It takes a day.</p></aside>`,
      "Back up first.\n\nIt takes a day."
    ],
    "notes of a framework": [
      `<div class="theme-admonition theme-admonition-warning alert alert--warning"><p>Back up first.</p></div>`,
      "> [!warning] warning\n> Back up first."
    ]
  })
  readsAll(
    {
      "the form around a whole page": [
        `<h2>Fees</h2><p>A permit costs 31 euros.</p>`,
        "## Fees\n\nA permit costs 31 euros."
      ]
    },
    (markup) => `<form id="aspnetForm"><main><h1>Help</h1><form>${introduction}${markup}</form></main></form>`
  )
})

describe("What is no content is left out:", () => {
  readsAll({
    "menus, lists of languages and dialogs that buttons open": [
      `<button aria-expanded="false" aria-controls="m">Menu</button><div id="m" hidden><a href="/a">Shop all shoes</a></div>
       <button aria-haspopup="listbox" aria-expanded="false" aria-controls="l">Language</button>
       <ul id="l" role="listbox" hidden><li role="option">Deutsch</li></ul>
       <button aria-expanded="false" aria-controls="c">Cookies</button><div role="dialog" id="c" hidden><p>We use cookies.</p></div>
       <button aria-expanded="false" aria-controls="s">Search</button><div id="s" hidden><p>Search</p><input type="text"></div>`,
      ""
    ],
    "hidden messages and buttons": [
      `<div style="display:none" class="form-done">Thank you for your message.</div><button>Copy</button>`,
      ""
    ],
    "comments, newsletters, related pages and links to other pages": [
      `<p>Done.</p><section id="comments"><h2>Comments</h2><p>First!</p></section>
       <section class="newsletter-signup"><h2>Newsletter</h2><p>Get our letter.</p></section>
       <aside class="author-box"><p>The author lives in Vienna and writes about boots.</p></aside>
       <ul class="docnav"><li class="previous"><a href="/p"><strong>Prev</strong> 2. Plans</a></li></ul>
       <aside class="sidebar"><ul><li><a href="/boots">Ten boots</a></li></ul></aside>
       <div class="navfooter"><table><tr><td><a href="/p">Prev</a></td><td><a href="/n">Next</a></td></tr></table></div>`,
      "Done."
    ]
  })
})

describe("Documentation:", () => {
  readsAll({
    "a term stays with the first paragraph of its definition": [
      `<dl><dt class="hdlist1"><code>-a</code></dt><dt>--all</dt><dd><p>Stages files.</p><p>New files are left out.</p></dd>
       <dt>Port</dt><dd>The port, <em>3000</em> by default.</dd></dl>`,
      "**`-a`**\n**\\--all**\nStages files.\n\nNew files are left out.\n\n**Port**\nThe port, *3000* by default."
    ],
    "a term that is a heading, or whose definition begins with code, is a block of its own": [
      `<dl><dt><h3>Fees</h3></dt><dd><p>None.</p></dd><dt>Example</dt><dd><pre>spoke serve</pre></dd></dl>`,
      "### Fees\n\nNone.\n\nExample\n\n```\nspoke serve\n```"
    ],
    "the words of links within the page, as generators write them": [
      `<p>See <a class="reference internal" href="#join"><code>join()</code></a> and <a class="xref" href="#split">Splitting</a>.</p>`,
      "See [`join()`](#join) and [Splitting](#split)."
    ],
    "line numbers beside code are left out": [
      `<div class="highlight-python"><table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre><span>1</span>
<span>2</span></pre></div></td><td class="code"><div><pre><span></span>alpha()
beta()
</pre></div></td></tr></table></div>
       <div class="language-sh highlighter-rouge"><div class="highlight"><pre class="highlight"><code><table class="rouge-table"><tbody><tr><td class="rouge-gutter gl"><pre class="lineno">1
2
</pre></td><td class="rouge-code"><pre>first
second
</pre></td></tr></tbody></table></code></pre></div></div>
       <table><tr><td>1</td><td>One</td></tr></table>`,
      "```python\nalpha()\nbeta()\n```\n\n```sh\nfirst\nsecond\n```\n\n| 1 | One |\n| --- | --- |"
    ],
    "a number beside more than a block of code is a cell of a table": [
      `<table><tr><td>42</td><td><p>Set the port first.</p><pre>export PORT=1</pre><p>Then start it.</p><pre>spoke serve</pre></td></tr></table>
       <table><thead><tr><th>Step</th><th>Command</th></tr></thead><tbody><tr><td>1</td><td><pre>npm ci</pre></td></tr></tbody></table>
       <table><tbody><tr><td>1</td><td><pre>git add</pre></td></tr></tbody><tbody><tr><td>2</td><td><pre>git push</pre></td></tr></tbody></table>`,
      [
        "| 42 | Set the port first.  ``` export PORT=1 ```  Then start it.  ``` spoke serve ``` |\n| --- | --- |",
        "| Step | Command |\n| --- | --- |\n| 1 | ``` npm ci ``` |",
        "| 1 | ``` git add ``` |\n| --- | --- |\n| 2 | ``` git push ``` |"
      ].join("\n\n")
    ],
    "an alert without a kind is content": [
      `<div class="alert">Save first.</div><div class="alert-box"><p>Unplug it.</p></div>
       <details class="details alert"><summary>More</summary><p>Proxies.</p></details>
       <div class="alert alert-warning">Careful.</div>`,
      "Save first.\n\nUnplug it.\n\nMore\n\nProxies.\n\n> [!warning] Warning\n> Careful."
    ],
    "an icon that is alone in its cell has its label": [
      `<table><tr><th>Plan</th><th>Team</th></tr><tr><td>Audit</td><td><svg role="img" aria-label="Included"><path d="M0 0"/></svg></td></tr>
       <tr><td>Export <svg><title>Help</title></svg></td><td><svg aria-hidden="true"><title>Cross</title></svg><span>No</span></td></tr></table>`,
      "| Plan | Team |\n| --- | --- |\n| Audit | Included |\n| Export | No |"
    ],
    "a note is left without the link to its mark": [
      `<p>At most 4 GB <a class="footnote-reference brackets" href="#id2" id="id1" role="doc-noteref"><span>[</span>1<span>]</span></a>.</p>
       <aside class="footnote-list brackets"><aside class="footnote brackets" id="id2" role="doc-footnote"><span class="label"><span>[</span><a role="doc-backlink" href="#id1">1</a><span>]</span></span><p>On 64-bit systems.</p></aside></aside>`,
      "At most 4 GB.\n\nOn 64-bit systems."
    ],
    "the words of links in a sentence, wherever they lead": [
      `<p>Read <a href="#maintenance">maintenance mode</a>, <a href="/api/author/list">authors</a> and
       <a href="https://bikes.example/" rel="sponsored">bikes</a>.</p>
       <ul><li><a href="#main-features">Features</a>: what it does</li></ul><div><a href="#main">Skip to content</a></div>`,
      "Read maintenance mode, authors and bikes.\n\n- Features: what it does"
    ],
    "the heading and the sentences of a header are content, its author and its date are not": [
      `<article><header><h2>Returns</h2><p>Returns cost five euros.</p><p>退货是免费的。</p><div>By Ada on <time>May 1</time></div></header>
       <p>Last.</p></article>`,
      "## Returns\n\nReturns cost five euros.\n\n退货是免费的。\n\nLast."
    ],
    "short sections with words that menus have, but no lists of other pages": [
      `<section><h2>Sign in</h2><p>Choose Sign in, then Register.</p></section>
       <div class="sect1"><h2>Context menus</h2><div class="sectionbody"><div class="paragraph"><p>Open the menu.</p></div></div></div>
       <section><h2>Related articles</h2><ul><li><a href="/menus">Menus and navigation</a></li><li><a href="/x">Sharing</a></li></ul></section>
       <section><h2>Popular</h2><div><h3><a href="/a">Login</a></h3><p>How to log in to it.</p></div><div><h3><a href="/b">Sharing</a></h3><p>How to share one.</p></div></section>`,
      "## Sign in\n\nChoose Sign in, then Register.\n\n## Context menus\n\nOpen the menu."
    ],
    "a section or a table whose id has a word such as comment among others": [
      `<div class="table" id="FUNCTIONS-INFO-COMMENT-TABLE"><p class="title"><b>Table 1. Functions of comments</b></p><table><tr><td>col_description</td></tr></table></div>
       <div id="comments-area"><p>Great post!</p></div>`,
      "**Table 1. Functions of comments**\n\ncol\\_description"
    ],
    "a word that begins with a punctuation mark keeps the space before it": [
      `<h2>The .env file</h2><p>Open .git/config or <b>your</b> .htaccess , then use :8080, ::before and .NET.
       Compare <code>a .b</code> ; that is all !</p><pre>git diff .git :x</pre>`,
      "## The .env file\n\nOpen .git/config or **your** .htaccess, then use :8080, ::before and .NET. Compare `a .b`; that is all!\n\n```\ngit diff .git :x\n```"
    ],
    "a heading of a note is its title, and begins no section": [
      `<h2>Options</h2><dl><dt>-b</dt><dd><p>Includes blobs.</p><div class="note" style="margin: 1em"><h3 class="title">Hint</h3>
       <p>It is slow.</p></div></dd><dt>-c</dt><dd><p>Cleans.</p></dd></dl>
       <div class="note"><h2>My notes</h2><p>One.</p><h3>Second</h3><p>Two.</p></div>`,
      "## Options\n\n**\\-b**\nIncludes blobs.\n\n> [!note] Hint\n> It is slow.\n\n**\\-c**\nCleans.\n\n## My notes\n\nOne.\n\n### Second\n\nTwo."
    ],
    "a note that is a table of an icon and a text is a note": [
      `<div class="tip" style="margin: 1em"><table border="0" summary="Tip"><tr><td rowspan="2"><img alt="[Tipp]" src="images/tip.png"/></td>
       <th align="left">Tipp</th></tr><tr><td align="left"><p>It is slow.</p><p>Wait.</p></td></tr></table></div>
       <div class="admonitionblock"><table><tr><td class="icon"><div class="title">Warning</div></td><td class="content">Do not.</td></tr></table></div>
       <div class="admonitionblock caution"><table><tr><td class="icon"><i class="fa" title="Caution"></i></td><td class="content">Hot.</td></tr></table></div>
       <div class="note"><table><tr><th>Key</th><th>Value</th></tr><tr><td>a</td><td>b</td></tr></table></div>`,
      "> [!tip] Tipp\n> It is slow.\n>\n> Wait.\n\n> [!warning] Warning\n> Do not.\n\n> [!caution] Caution\n> Hot.\n\n| Key | Value |\n| --- | --- |\n| a | b |"
    ],
    "a paragraph that is code with line breaks is a listing": [
      `<div class="example"><p><code>\n  htpasswd -c passwords\n </code></p></div>
       <p><code># htpasswd -c\n  passwords<br>New password: mypassword<br />&nbsp;Adding</code></p><p><code>one</code> line</p>`,
      "```\nhtpasswd -c passwords\n```\n\n```\n# htpasswd -c passwords\nNew password: mypassword\n Adding\n```\n\n`one` line"
    ],
    "a quote that is a listing alone is a listing": [
      `<blockquote><pre>\nopen();\nclose();\n</pre></blockquote><blockquote><p>She said:</p><pre>open();</pre></blockquote>`,
      "```\nopen();\nclose();\n```\n\n> She said:\n>\n> ```\n> open();\n> ```"
    ],
    "emphasis within code is text": [
      `<p><code>-f <em class="replaceable"><code>file</code></em></code> writes to <em class="parameter"><code>file</code></em>.</p>`,
      "`-f file` writes to *`file`*."
    ],
    "pieces of code without a space between are one": [
      `<p>Use <code>--database</code><code> NAME</code> or <code>a</code> <code>b</code>.</p>`,
      "Use `--database NAME` or `a` `b`."
    ],
    "the mark of a link to a signature is left out": [
      `<dl><dt class="sig sig-object" id="join"><code>join</code>(<a href="#path">path</a>)<a class="headerlink" href="#join">¶</a></dt>
       <dd><p>Joins paths.</p></dd></dl>`,
      "**`join`(path)**\nJoins paths."
    ],
    "the mark of a link to a term is left out": [
      `<dl><dt id="join">join(path)<a class="headerlink" href="#join" title="Permalink to this definition">¶</a></dt>
       <dd><p>Joins paths.</p></dd></dl>`,
      "**join(path)**\nJoins paths."
    ]
  })

  it.effect("The header of a manual page says what the command does", () =>
    Effect.map(
      read(
        `<div id="header"><h1>spoke-serve(1) Manual Page</h1><h2>NAME</h2><div class="sectionbody"><p>spoke-serve - Starts the
         service</p></div></div><div id="content"><div class="sect1"><h2>SYNOPSIS</h2>${introduction}</div></div>`,
        ""
      ),
      (found) => expect(found).toMatch(/^## NAME\n\nspoke-serve - Starts the service\n\n## SYNOPSIS/u)
    )
  )

  it.effect("An upload has no address, so its links to other pages stay relative", () =>
    Effect.gen(function* () {
      const parser = yield* DocumentParser
      const { content } = yield* parser.parse({
        bytes: strToU8(
          `<!doctype html><html><head><title>Help</title></head><body><main><h1>Help</h1>${introduction}
           <p>See <a href="fees.html#permit">fees</a> and <a href="../index.html">all pages</a>.</p></main></body></html>`
        )
      })
      expect(content).toContain("See [fees](fees.html#permit) and [all pages](../index.html).")
    }).pipe(Effect.provide(layerInline({ maxPages: 50 })))
  )
})
