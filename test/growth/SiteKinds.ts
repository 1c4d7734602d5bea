/** Content of a crawled site. */
import { bytesOf, textOf } from "./Grown.ts"
import { resultOf } from "../ResultOf.ts"
import { documents } from "./DocumentKinds.ts"
import { type Kind, kind, orRefused, prose, tokens } from "./Kind.ts"

const site = "crawled site"
const html = [
  ...tokens("<p>¦</p>¦<div>¦</div>¦<b>¦</b>¦<a href=/x>¦</a>¦<table>¦<tr>¦<td>¦</td>¦</tr>¦</table>"),
  ...tokens("<ul>¦<li>¦</li>¦</ul>¦<h1>¦</h1>¦<h2>T</h2>¦<pre>¦</pre>¦<code>¦</code>¦<script>¦</script>"),
  ...tokens("<style>¦</style>¦<!--¦-->¦<![CDATA[¦<svg>¦</svg>¦<math>¦<img src=x alt=y>¦<br>¦&amp;¦&#x41;"),
  ...tokens("<¦>¦\"¦'¦text ¦Some words of a sentence. ¦\n¦<section>¦<article>¦</article>¦<span class=a>"),
  ...tokens("</span>¦<form>¦<input>¦<blockquote>¦</blockquote>¦<figure>¦<sup>1</sup>¦<noscript>¦<title>"),
  ...tokens("<a id=fn1 href=#fn1>[1]</a>¦<meta property=og:title content=x>¦<link rel=canonical href=/>"),
  ...tokens("<select><option>¦<p style=display:none>¦</title>¦<base href=/>¦<iframe></iframe>¦<nav>¦</nav>"),
  ...tokens("<div class=comment>¦<dl><dt>¦<dd>¦<details><summary>¦</body>¦<html>")
]
/** What generators of documentation write, and what is read of it by its names. */
const generated = [
  ...tokens(
    "<div role=tablist>¦<div role=tab>¦<button role=tab aria-controls=a>¦<div role=tabpanel>¦<div id=a>"
  ),
  ...tokens(
    "<div class=tabbed-set>¦<div class=tabbed-labels>¦<label>L</label>¦<div class=tabbed-block>¦<label>"
  ),
  ...tokens(
    "<div class=tabbed-content>¦<ul class=tablist>¦<li class=tab>¦<div class=sd-tab-set>¦</label>¦</li>"
  ),
  ...tokens(
    "<div class='admonition note'>¦<div class='alert alert-info'>¦<div class=note>¦<h3>T</h3>¦</div>"
  ),
  ...tokens(
    "<p class=admonition-title>Note</p>¦<aside>¦</aside>¦<main>¦<article>¦</article>¦<header>¦</header>"
  ),
  ...tokens(
    "<table>¦<tr>¦<td title=Note>¦<td rowspan=3>¦<td colspan=2>¦</td>¦</table>¦<table class=memname>"
  ),
  ...tokens("<caption>C</caption>¦<pre>¦</pre>¦<code>¦</code>¦<code>a</code>¦<p>¦</p>¦<br>¦<em>¦</em>¦<var>"),
  ...tokens(
    "<div class=highlight>¦<div class=language-sh>¦<figure>¦<div class=fragment>¦<div class=line>¦<span>"
  ),
  ...tokens(
    "<td>1 2</td>¦<span class=lineno>1</span>¦<blockquote>¦</blockquote>¦<dl>¦<dt>a</dt>¦<dd>¦</dd>¦</dl>"
  ),
  ...tokens(
    "<dt class=sig>¦<a class=headerlink href=#a>#</a>¦<h2 id=a>A</h2>¦<a href=#a>A</a>¦<a href=/b>B</a>"
  ),
  ...tokens(
    "<a aria-label=skip href=/x>¦<div aria-label=skip>¦</a>¦<div class=page-feedback>¦<div class=footnote>"
  ),
  ...tokens(
    "<a role=doc-backlink href=#b>b</a>¦<svg><text>a</text><text>b</text></svg>¦<ruby>¦<rt>r</rt>¦</ruby>"
  ),
  ...tokens(
    "<fieldset>¦<legend>L</legend>¦</fieldset>¦<form>¦</form>¦<input>¦<button aria-expanded=false>B</button>"
  ),
  ...tokens(
    "<div hidden class=panel>¦<div id=header>¦<div id=content>¦<div class=nav>¦<section>¦</section>¦<ul>"
  ),
  ...tokens(
    "<h1>H</h1>¦<time>2026-01-01</time>¦<details>¦<summary>S</summary>¦</details>¦</ul>¦</span>¦<ol>¦</ol>"
  ),
  ...tokens("word ¦Some words of a sentence. ¦ ¦\n¦.git ¦Edit this page¦<div>¦</main>¦<img src=x alt=y>¦<li>")
]
const addresses = tokens("https://a.example/¦http://b.example¦/¦a¦b¦*¦?¦#¦%20¦%¦é¦.¦..¦-¦?x=1&y=2¦docs/¦[¦\\")
const globs = tokens("*¦**¦?¦a¦b¦/¦docs¦https://a.example/¦.¦[ab]¦é")
const robots = tokens(
  "user-agent: *\n¦User-agent: SpokeBot\n¦disallow: /¦allow: /¦/*a$¦*¦$¦a¦b¦\n¦\r¦%61¦é¦: ¦" +
    "sitemap: https://a.example/s.xml\n¦crawl-delay: 2\n¦# words"
)
const sitemaps = tokens(
  "<urlset>¦</urlset>¦<sitemapindex>¦<url>¦</url>¦<loc>¦</loc>¦<lastmod>2026-01-01</lastmod>¦&amp;¦" +
    "https://a.example/x¦https://a.example/¦<![CDATA[¦]]>¦\n¦ ¦<image:loc>¦y¦\r"
)

export const siteKinds: ReadonlyArray<Kind> = [
  kind(
    ["patterns of a source", "REST client", 4],
    (random) => {
      const [include, exclude] = [textOf(random, globs)(1), textOf(random, globs)(1)]
      const address = textOf(random, addresses)
      return (factor) => ({
        includePatterns: [include.slice(0, 1_024)],
        excludePatterns: [exclude.slice(0, 1_024)],
        url: `https://a.example/${address(factor)}`
      })
    },
    ({ Glob }, { url, ...patterns }) => orRefused(() => Glob.makeUrlFilter(patterns)(new URL(url).href))
  ),
  kind(
    ["robots.txt", site, 4],
    (random) => textOf(random, robots),
    ({ Robots }, text) => {
      const rules = Robots.parseRobots(text)
      const allowed = Robots.mayFetch(rules, "SpokeBot", "https://a.example/aab/ba?ab")
      return [allowed, Robots.crawlDelay(rules, "SpokeBot"), rules.sitemaps.length]
    }
  ),
  kind(
    ["address held against robots.txt", site, 2],
    (random) => {
      const rules = textOf(random, robots)(1)
      const path = textOf(random, addresses)
      return (factor) => ({ rules: `user-agent: *\n${rules}`, url: `https://a.example/${path(factor)}` })
    },
    ({ Robots }, { rules, url }) => orRefused(() => Robots.mayFetch(Robots.parseRobots(rules), "a", url))
  ),
  kind(
    ["sitemap", site, 4],
    (random) => textOf(random, sitemaps),
    ({ SitemapXml }, text) => resultOf(SitemapXml.sitemapSteps(text))
  ),
  kind(
    ["pages compared with each other", site, 3],
    (random) => {
      const bits = random.pick([0n, 7n, 0xffffn, 0x9e3779b97f4a7c15n])
      const titles = random.pick([1, 3])
      const print = (at: number) => ({
        uri: `u${at}`,
        digest: `d${at}`,
        fingerprint: `${String(at % titles).repeat(16)}:${BigInt.asUintN(64, BigInt(at) * bits)
          .toString(16)
          .padStart(16, "0")}`
      })
      return (factor) => Array.from({ length: 60 * factor }, (_, at) => print(at))
    },
    ({ DuplicateDetector }, prints) => {
      const detector = DuplicateDetector.makeDuplicateDetector()
      return prints.filter((print) => detector.check(print) === undefined).length
    }
  ),
  kind(
    ["fingerprint of a page", site, 3],
    (random) => textOf(random, prose),
    ({ Fingerprint }, text) =>
      Fingerprint.fingerprintOf({
        title: "T",
        content: `${"one two three ".repeat(30)}${text}`,
        format: "text"
      })
  ),
  documents(
    ["web page", site, 1],
    (random) => {
      const grown = textOf(random, html)
      const inHead = random.below(3) === 0
      return bytesOf((factor) => {
        const [head, body] = inHead ? [grown(factor), ""] : ["", grown(factor)]
        return `<!doctype html><html><head><title>T</title>${head}</head><body><p>Some words.</p>${body}</body></html>`
      })
    },
    { url: "https://a.example/x" }
  ),
  documents(
    ["page of documentation", site, 1],
    (random) => {
      const grown = textOf(random, generated)
      return bytesOf(
        (factor) =>
          `<!doctype html><html><head><title>T</title></head><body><p>Some words.</p>${grown(factor)}</body></html>`
      )
    },
    { url: "https://a.example/x" }
  )
]
