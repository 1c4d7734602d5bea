/**
 * Builds the documentation for readers of an installation into dist/ui: a page for each file of docs/, the reference of
 * the API, an index for the search, and their script and style. The pages of guides need no script.
 */
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import * as Path from "node:path"
import MarkdownIt from "markdown-it"
import { filesOfMetafile } from "./bundled.mjs"
import { root } from "./seed.mjs"

const folder = Path.join(root, "docs")
/** The start page: it lists the guides by reader. */
const start = "README"

export const guideFiles = () =>
  Fs.readdirSync(folder)
    .filter((name) => /\.(?:md|svg)$/.test(name))
    .map((name) => Path.join(folder, name))

const escapeHtml = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`)

/** The anchor of a heading, as Git hosts make it. */
const anchorOf = (heading) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replace(/\s/gu, "-")

/** The text of inline tokens, without formatting. */
const plainText = (token) =>
  (token?.children ?? [])
    .filter(({ type }) => ["text", "code_inline", "softbreak"].includes(type))
    .map(({ content, type }) => (type === "softbreak" ? " " : content))
    .join("")

/**
 * Addresses in the application. Null for files that are only in the repository: they are shown without a link.
 */
const addressOf = (href, pictures) => {
  if (/^(?:https?:|mailto:|#)/.test(href)) return href
  const [file, fragment] = href.split("#")
  const page = /^([\w-]+)\.md$/.exec(file)?.[1]
  if (page !== undefined) {
    const place = page === start ? "/docs/guide" : `/docs/guide/${page}`
    return fragment === undefined ? place : `${place}#${fragment}`
  }
  return pictures.get(file) ?? null
}

/** The HTML of a page, its title, and its sections for the search. */
const guide = (name, pictures) => {
  const markdown = new MarkdownIt({ html: false, linkify: false })
  const tokens = markdown.parse(
    // Comments mark generated parts of a page.
    Fs.readFileSync(Path.join(folder, `${name}.md`), "utf8").replace(/^<!--.*-->$/gm, ""),
    {}
  )
  const sections = []
  tokens.forEach((token, place) => {
    if (token.type === "heading_open") {
      const heading = plainText(tokens[place + 1])
      const anchor = anchorOf(heading)
      token.attrSet("id", anchor)
      sections.push({ heading, anchor: sections.length === 0 ? "" : anchor, text: "" })
    }
    const section = sections.at(-1)
    if (section !== undefined && token.type === "inline" && tokens[place - 1]?.type !== "heading_open")
      section.text += ` ${plainText(token)}`
    if (section !== undefined && token.type === "fence") section.text += ` ${token.content}`
    // An empty cell in a table's head is no header.
    if (token.type === "th_open" && tokens[place + 1].content === "")
      for (const cell of [token, tokens[place + 2]]) cell.tag = "td"
    if (token.type !== "inline") return
    const open = []
    token.children = token.children.filter((child) => {
      if (child.type === "image") child.attrSet("src", addressOf(child.attrGet("src"), pictures) ?? "")
      if (child.type === "link_open") {
        const address = addressOf(child.attrGet("href"), pictures)
        open.push(address)
        if (address !== null) child.attrSet("href", address)
        return address !== null
      }
      return child.type !== "link_close" || open.pop() !== null
    })
  })
  markdown.renderer.rules.table_open = () => '<div class="table" tabindex="0"><table>'
  markdown.renderer.rules.table_close = () => "</table></div>"
  markdown.renderer.rules.fence = (fenceTokens, place) =>
    `<pre tabindex="0"><code>${escapeHtml(fenceTokens[place].content)}</code></pre>`
  return {
    title: sections[0]?.heading ?? name,
    html: markdown.renderer.render(tokens, markdown.options, {}),
    sections
  }
}

/** The guides by reader, as the start page lists them, each once for each reader. */
const guidesByReader = (guides) =>
  Fs.readFileSync(Path.join(folder, `${start}.md`), "utf8")
    .split(/^## /m)
    .slice(1)
    .map((part) => {
      const [reader = ""] = part.split("\n")
      const names = [...part.matchAll(/\]\(([\w-]+)\.md\)/g)].map(([, name]) => name)
      return { reader, names: [...new Set(names)].filter((name) => guides.has(name)) }
    })
    .filter(({ names }) => names.length > 0)

const page = ({ body, current, guides, mark, script, style, title }) => {
  const link = (href, text) =>
    `<li><a href="${href}"${href === current ? ' aria-current="page"' : ""}>${escapeHtml(text)}</a></li>`
  const readers = guidesByReader(guides)
    .map(
      ({ names, reader }) =>
        `<h2>${escapeHtml(reader)}</h2><ul>${names
          .map((name) => link(`/docs/guide/${name}`, guides.get(name).title))
          .join("")}</ul>`
    )
    .join("")
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)} · Spoke</title>
<link rel="icon" href="/assets/${mark}">
<link rel="stylesheet" href="/assets/${style}">
<script src="/assets/${script}" defer></script>
</head>
<body>
<header>
<a class="home" href="/docs/guide"><img src="/assets/${mark}" alt="" width="24" height="24"> Documentation</a>
<div id="search"></div>
<a class="contents" href="#contents">Contents</a>
<a href="/app/">Dashboard</a>
</header>
<main>${body}</main>
<nav id="contents" aria-label="Documentation">
<ul>${link("/docs/guide", "Where to begin")}${link("/docs", "API reference")}</ul>
<div id="operations"></div>
${readers}
</nav>
</body>
</html>
`
}

/** The name of a file in `outDir` that the dashboard's build has written, and that the documentation shares. */
const shared = (outDir, pattern) => {
  const found = Fs.readdirSync(outDir).filter((name) => pattern.test(name))
  if (found.length !== 1) throw new Error(`${found.length} files of the dashboard are named ${pattern}.`)
  return found[0]
}

const sharedFont = (outDir) => ({
  name: "shared-font",
  setup: ({ onResolve }) => {
    onResolve({ filter: /\.woff2$/ }, () => ({
      path: `./${shared(outDir, /^geist-.*\.woff2$/)}`,
      external: true
    }))
  }
})

/** Returns the files that its script and style consist of. */
export const buildDocs = async (outDir) => {
  const { build } = await import("esbuild")
  const source = Path.join(root, "src/ui/docs")
  const built = await build({
    entryPoints: [Path.join(source, "main.tsx"), Path.join(source, "docs.css")],
    outdir: outDir,
    entryNames: "docs-[hash]",
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    plugins: [sharedFont(outDir)],
    logLevel: "warning",
    metafile: true
  })
  const names = Object.keys(built.metafile.outputs).map((name) => Path.basename(name))
  const fileNamed = (extension) => names.find((name) => name.endsWith(extension))

  const pictures = new Map(
    guideFiles()
      .filter((file) => file.endsWith(".svg"))
      .map((file) => {
        const bytes = Fs.readFileSync(file)
        const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 8)
        const name = `${Path.basename(file, ".svg")}-${hash}.svg`
        Fs.writeFileSync(Path.join(outDir, name), bytes)
        return [Path.basename(file), `/assets/${name}`]
      })
  )
  const guides = new Map(
    guideFiles()
      .filter((file) => file.endsWith(".md"))
      .map((file) => Path.basename(file, ".md"))
      .map((name) => [name, guide(name, pictures)])
  )
  const mark = shared(outDir, /^mark-.*\.svg$/)
  const common = { guides, mark, script: fileNamed(".js"), style: fileNamed(".css") }
  const write = (name, parts) => Fs.writeFileSync(Path.join(outDir, name), page({ ...common, ...parts }))
  for (const [name, { html, title }] of guides) {
    const current = name === start ? "/docs/guide" : `/docs/guide/${name}`
    write(`guide-${name}.html`, { body: html, current, title })
  }
  write("docs.html", {
    body: '<h1>API reference</h1><div id="reference"><noscript>The reference needs JavaScript. <a href="/openapi.json">Its description</a> does not.</noscript></div>',
    current: "/docs",
    title: "API reference"
  })
  const index = [...guides].flatMap(([name, { sections, title }]) =>
    sections.map(({ anchor, heading, text }) => ({
      href: `${name === start ? "/docs/guide" : `/docs/guide/${name}`}${anchor === "" ? "" : `#${anchor}`}`,
      page: title,
      heading,
      text: text.trim()
    }))
  )
  Fs.writeFileSync(Path.join(outDir, "docs-search.json"), JSON.stringify(index))
  return filesOfMetafile(built.metafile)
}
