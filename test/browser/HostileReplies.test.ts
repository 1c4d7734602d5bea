/**
 * Hostile texts as replies of the dashboard and of the widget, with their own style sheets, on a page without a policy:
 * nothing runs, nothing is requested, and nothing leaves its column. `SPOKE_HOSTILE_REPLIES` is the number of texts.
 */
import * as Http from "node:http"
import * as Path from "node:path"
import * as FastCheck from "effect/FastCheck"
import { build, type BuildOptions } from "esbuild"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { root } from "../e2e/Spoke.ts"
import { addresses, elements, lines, marks, wide, written } from "../ui/hostileMarkdown.ts"
import { hasBrowser, launch, phone } from "./Browser.ts"
import { addressOf } from "./GalleryWorld.ts"

const count = Number(process.env["SPOKE_HOSTILE_REPLIES"] ?? 2_000)
const batch = 250

const program = `
  import { h, render } from "preact"
  import { elements } from "./src/ui/markdown/Elements.ts"
  import "./src/ui/dashboard/base.css"
  import dashboard from "./src/ui/dashboard/components/replies/Prose.module.css"
  import widget from "./src/ui/widget/widget.css?text"

  const allowed = new Set("div p strong em s code pre br hr a ul ol li blockquote table thead tbody tr th td button".split(" "))
  const names = new Set("href rel target start scope tabindex data-part data-align class".split(" "))
  const width = 300
  const columns = { dashboard: document.body.appendChild(document.createElement("main")) }
  const host = document.body.appendChild(document.createElement("div"))
  const tree = host.attachShadow({ mode: "open" })
  tree.append(Object.assign(document.createElement("style"), { textContent: widget }))
  columns.widget = tree.appendChild(document.createElement("div"))
  const classes = { dashboard: dashboard.prose, widget: "prose" }

  const wrong = (box) => {
    const { left, right } = box.getBoundingClientRect()
    if (box.scrollWidth > box.clientWidth) return "wider than its column: " + box.scrollWidth
    for (const element of box.querySelectorAll("*")) {
      const tag = element.localName
      if (!allowed.has(tag)) return "an element " + tag
      for (const { name } of element.attributes) if (!names.has(name)) return "an attribute " + name
      if (tag === "a" && !/^(?:https?|mailto):$/u.test(element.protocol)) return "a link to " + element.href
      if (element.closest("pre, table") !== null) continue
      const place = element.getBoundingClientRect()
      if (place.left < left - 1 || place.right > right + 1) return tag + " outside its column"
    }
    return null
  }

  window.ran = () => { window.hasRun = true }
  window.show = (texts) => Object.entries(columns).flatMap(([name, column]) => {
    const boxes = texts.map((text, place) => {
      const box = column.appendChild(document.createElement("div"))
      box.style.width = width + "px"
      if (name === "widget") box.className = "bubble"
      const citation = (index) => index === 1 ? h("button", { class: "chip" }, "1") : null
      render(h("div", { class: classes[name] }, ...elements(text, { h, citation, streaming: place % 2 === 0 })), box)
      return box
    })
    const found = boxes.map((box, place) => [wrong(box), texts[place]]).filter(([problem]) => problem !== null)
    boxes.forEach((box) => { render(null, box); box.remove() })
    return found.map(([problem, text]) => name + ": " + problem + ": " + JSON.stringify(text))
  })
`

/** A style sheet as a text, by the end of its name. */
const asText: NonNullable<BuildOptions["plugins"]>[number] = {
  name: "as-text",
  setup: ({ onLoad, onResolve }) => {
    onResolve({ filter: /\?text$/ }, ({ path }) => ({
      path: Path.join(root, path.slice(0, -"?text".length)),
      namespace: "text"
    }))
    onLoad({ filter: /./, namespace: "text" }, async ({ path }) => {
      const { outputFiles } = await build({ entryPoints: [path], bundle: true, write: false })
      return { contents: outputFiles[0]?.text ?? "", loader: "text" }
    })
  }
}

describe.skipIf(!hasBrowser)("A hostile reply", () => {
  const files = new Map<string, string>()
  const site = Http.createServer((request, response) => {
    const file = files.get(request.url ?? "")
    const type = request.url === "/style.css" ? "text/css" : "text/javascript"
    response.writeHead(200, { "content-type": `${file === undefined ? "text/html" : type}; charset=utf-8` })
    response.end(
      file ??
        '<!doctype html><html lang="en"><link rel="stylesheet" href="/style.css"><link rel="icon" href="data:,"><body><script type="module" src="/script.js"></script>'
    )
  })
  let browser: Browser
  let page: Page

  beforeAll(async () => {
    const { outputFiles } = await build({
      stdin: { contents: program, resolveDir: root },
      bundle: true,
      write: false,
      outdir: "out",
      format: "esm",
      loader: { ".woff2": "empty" },
      plugins: [asText]
    })
    for (const { path, text } of outputFiles)
      files.set(path.endsWith(".css") ? "/style.css" : "/script.js", text)
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve))
    browser = await launch()
    page = await (await browser.newContext(phone)).newPage()
    await page.goto(addressOf(site))
    await page.waitForFunction("window.show !== undefined")
  }, 120_000)

  afterAll(async () => {
    await browser.close()
    site.close()
  })

  it(
    `runs nothing, requests nothing and stays in its column, in ${count.toLocaleString("en")} texts`,
    async () => {
      const requested: Array<string> = []
      page.on("request", (request) => requested.push(request.url()))
      page.on("dialog", (dialog) => requested.push(`dialog: ${dialog.message()}`))
      const seed = Date.now()
      const texts = FastCheck.sample(written([...marks, ...lines, ...addresses, ...elements, ...wide]), {
        numRuns: count,
        seed
      })
      for (let begin = 0; begin < count; begin += batch) {
        const found = await page.evaluate(`show(${JSON.stringify(texts.slice(begin, begin + batch))})`)
        expect([seed, found]).toEqual([seed, []])
      }
      expect(await page.evaluate("[window.hasRun, document.body.children.length]")).toEqual([undefined, 3])
      expect(requested).toEqual([])
    },
    Math.max(120_000, count * 20)
  )
})
