/** Pages of documentation generators and wikis: what they put beside the text that is content, and what is none. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { main, read, readsAll } from "./Pages.ts"

describe("Content that stands beside the text:", () => {
  readsAll({
    "a box of Sphinx with a title, but no sidebar of a blog": [
      `<aside class="sidebar"><p class="sidebar-title">Directives</p><p><code>toctree</code> is a directive.</p></aside>
       <div class="sidebar"><h3 class="sidebar-title">Categories</h3><ul><li>Cars</li></ul></div>`,
      "Directives\n\n`toctree` is a directive."
    ],
    "an admonition of Docusaurus, with its title": [
      `<div class="theme-admonition theme-admonition-note admonition_xJ alert alert--secondary"><div class="admonitionHeading_Gv"><span class="admonitionIcon_Rf">
       <svg viewBox="0 0 14 16"><path d="M6"/></svg></span>Before you start</div><div class="admonitionContent_Bu"><p>Back up.</p></div></div>`,
      "> [!note] Before you start\n> Back up."
    ],
    "a warning about headers and footers": [
      `<div class="admonition warning"><p class="admonition-title">Warning</p><p>Use no <a href="/h">header</a> and no <a href="/f">footer</a>.</p></div>`,
      "> [!warning] Warning\n> Use no [header](https://shop.example/h) and no [footer](https://shop.example/f)."
    ],
    "a note that is a link": [
      `<aside class="footnote-list brackets"><aside class="footnote brackets" id="id10" role="note"><span class="label"><span>[</span>
       <a role="doc-backlink" href="#id9">2</a><span>]</span></span><p><a href="https://w3.example/modes">Writing modes</a></p></aside></aside>`,
      "[Writing modes](https://w3.example/modes)"
    ],
    "finished tasks and labels of values, but no labels of fields": [
      `<fieldset><legend>Opening hours</legend><p>Monday to Friday.</p></fieldset>
       <ul><li><label><input type="checkbox" disabled checked> Install it</label></li></ul><div><label>Phone</label><span>0664 123</span></div>
       <div><label for="q">Search all pages</label><input id="q" type="text"></div>`,
      "Opening hours\n\nMonday to Friday.\n\n- Install it\n\nPhone 0664 123"
    ],
    "the texts of a diagram, but not its markup": [
      `<svg viewBox="0 0 5 5" role="img"><title>Flow</title><style>.a{b:c}</style><g><text x="1">Start</text><text>Build pages</text><text>10</text></g></svg>
       <p>Click <svg viewBox="0 0 24 24"><path d="M0"/></svg> twice.</p>`,
      "Start, Build pages\n\nClick twice."
    ],
    "what is labelled with skipping": [
      `<h2 aria-label="Skip locks">Skip locks</h2><div aria-label="skip-list"><p>A list with levels.</p></div>
       <ul><li><a href="/ahead" aria-label="Skip ahead in a video">Skip ahead</a></li></ul>`,
      "## Skip locks\n\nA list with levels.\n\n- [Skip ahead](https://shop.example/ahead)"
    ],
    "sections and headings about comments and copyright that link to themselves": [
      `<section id="comments"><h2>Comments<a class="headerlink" href="#comments">¶</a></h2><p>A line that begins with two dots.</p></section>
       <h2 id="copyright"><a class="toc-backref" href="#id3">Copyright of files</a></h2><p>It stays yours.</p>
       <h3 id="fees">Fees <a href="#fees">Copy link</a></h3><p>None.</p>`,
      "## Comments\n\nA line that begins with two dots.\n\n## Copyright of files\n\nIt stays yours.\n\n### Fees\n\nNone."
    ]
  })
})

describe("Tabs of generators, each panel after its name:", () => {
  const both = "npm\n\nRun npm install.\n\npnpm\n\nRun pnpm install."
  readsAll({
    "listings of VitePress": [
      `<div class="vp-code-group"><div class="tabs"><input type="radio" name="g" id="t1" checked><label data-title="npm" for="t1">npm</label>
       <input type="radio" name="g" id="t2"><label data-title="pnpm" for="t2">pnpm</label></div><div class="blocks">
       <div class="language-sh active"><button class="copy"></button><span class="lang">sh</span><pre class="shiki"><code><span class="line">npm i</span></code></pre></div>
       <div class="language-sh"><button class="copy"></button><span class="lang">sh</span><pre class="shiki"><code><span class="line">pnpm i</span></code></pre></div></div></div>`,
      "npm\n\n```sh\nnpm i\n```\n\npnpm\n\n```sh\npnpm i\n```"
    ],
    "panels of Starlight that name their tabs": [
      `<starlight-tabs><div class="tablist-wrapper"><ul role="tablist"><li role="presentation" class="tab"><a role="tab" href="#p7" id="t7">npm</a></li>
       <li role="presentation" class="tab"><a role="tab" href="#p8" id="t8">pnpm</a></li></ul></div><div id="p7" aria-labelledby="t7" role="tabpanel"><p>Run npm install.</p></div>
       <div id="p8" aria-labelledby="t8" role="tabpanel" hidden><p>Run pnpm install.</p></div></starlight-tabs>`,
      both
    ],
    "panels of Asciidoctor that name their tabs": [
      `<div class="openblock tabs"><div class="content"><div class="ulist tablist"><ul><li id="n" class="tab"><p>npm</p></li><li id="m" class="tab"><p>pnpm</p></li></ul></div>
       <div class="tabpanel" aria-labelledby="n"><div class="paragraph"><p>Run npm install.</p></div></div>
       <div class="tabpanel" aria-labelledby="m"><div class="paragraph"><p>Run pnpm install.</p></div></div></div></div>`,
      both
    ],
    "fields and labels of Sphinx": [
      `<div class="sd-tab-set docutils"><input checked id="s0" name="s" type="radio"><label class="sd-tab-label" for="s0">npm</label><div class="sd-tab-content"><p>Run npm install.</p></div>
       <input id="s1" name="s" type="radio"><label class="sd-tab-label" for="s1">pnpm</label><div class="sd-tab-content"><p>Run pnpm install.</p></div></div>`,
      both
    ]
  })
})

describe("What generators and wikis add to each page is left out:", () => {
  readsAll({
    "questions to readers, dates of changes and links to editors": [
      `<div class="flex"><p class="text-sm">Last updated <!-- --><time datetime="2024">3 months ago</time></p><div><p>Was this helpful?</p><button>Yes</button></div></div>
       <div class="last">Last updated on <b>May 1, 2024</b> by <b>Ada</b></div><div><a href="/e">Edit this page</a></div><div>On this page</div>
       <div class="page-metadata"><ul><li>Created by <a>Ada</a>, last modified on May 1</li></ul></div>
       <div class="labels-section"><ul class="label-list"><li>No labels</li></ul></div>`,
      ""
    ],
    "but no sentences, headings and values with their words": [
      `<p>Last updated: when the cache was filled.</p><p>Edit this page when a fee changes.</p><div>Click <span>Edit this page</span> to change it.</div>
       <h2>Last updated</h2><p>Was this helpful? It was.</p><table><tr><th>Name</th><th>Last updated</th></tr><tr><td>Fees</td><td class="last-updated">2024</td></tr></table>`,
      "Last updated: when the cache was filled.\n\nEdit this page when a fee changes.\n\nClick Edit this page to change it.\n\n## Last updated\n\nWas this helpful? It was.\n\n| Name | Last updated |\n| --- | --- |\n| Fees | 2024 |"
    ]
  })
})

it.effect("Reads notes within each other, whatever their number", () =>
  Effect.gen(function* () {
    const levels = 200
    const note = '<div class="admonition note"><p class="admonition-title">Note</p>'
    const found = yield* read(
      main(`${note.repeat(levels)}<p>The key is below.</p>${"</div>".repeat(levels)}`)
    )
    expect(found.startsWith("> [!note] Note")).toBe(true)
    expect(found.split("Note").length - 1).toBe(levels)
    expect(found).toContain("The key is below.")
  })
)
