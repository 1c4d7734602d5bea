/** Headless Chromium, where one is installed; in CI its absence is a failure, elsewhere a visible skip. */
import * as Fs from "node:fs"
import { createRequire } from "node:module"
import * as Path from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { type Browser, type BrowserContextOptions, chromium, type Page, type Request } from "playwright-core"
import { expect } from "vitest"

const candidates = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
const executablePath = process.env["CHROMIUM"] ?? candidates.find((path) => Fs.existsSync(path))

/** False where there is no browser: a visible skip, but a failure in CI. */
export const hasBrowser = process.env["CI"] === "true" || executablePath !== undefined

export const launch = (): Promise<Browser> => {
  if (executablePath === undefined) throw new Error("No Chromium is installed; set CHROMIUM to its path.")
  return chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
  })
}

export const desktop: BrowserContextOptions = { viewport: { width: 1280, height: 860 }, locale: "en-GB" }
export const phone: BrowserContextOptions = {
  viewport: { width: 390, height: 844 },
  locale: "en-GB",
  isMobile: true,
  hasTouch: true
}

/** Milliseconds without a request after which a page has what it asked for. */
const quietTime = 100

/**
 * Counts the requests of `page` from now on. The function that is returned resolves when none was under way for
 * {@link quietTime}. The driver's own `networkidle` takes half a second for each page.
 */
export const watchRequests = (page: Page): (() => Promise<void>) => {
  const running = new Set<Request>()
  let since = performance.now()
  page.on("request", (request) => running.add(request))
  const end = (request: Request) => {
    running.delete(request)
    since = performance.now()
  }
  page.on("requestfinished", end)
  page.on("requestfailed", end)
  return async () => {
    const begun = performance.now()
    while (running.size > 0 || performance.now() - Math.max(begun, since) < quietTime) await delay(20)
  }
}

/** What the page complained of: errors of scripts, of the console, and blocked by its policy. */
export const complaints = (page: Page): ReadonlyArray<string> => {
  const found: Array<string> = []
  page.on("pageerror", (problem) => found.push(problem.message))
  page.on("console", (message) => {
    // A refused request is the page's business, which shows it.
    const refused = message.text().startsWith("Failed to load resource")
    if (message.type() === "error" && !refused) found.push(message.text())
  })
  return found
}

const axe = Fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
/** A page differs between light and dark in nothing else. */
const colourRules = { type: "rule", values: ["color-contrast", "link-in-text-block"] }

interface Violation {
  readonly id: string
  readonly help: string
  readonly nodes: ReadonlyArray<{ readonly html: string }>
}

/** No violation of WCAG 2.2 A and AA, as far as a program can tell; `colours`: of the rules about colours alone. */
export const expectAccessible = async (page: Page, colours = false): Promise<void> => {
  // Evaluated by the debugger, which the page's policy does not bind.
  if (!(await page.evaluate("window.axe !== undefined"))) await page.evaluate(axe)
  const violations = await page.evaluate(
    // An open popover stands beside the landmarks, as a dialog does, and brings buttons for screen readers of its own.
    `axe.run(document, {
         runOnly: ${JSON.stringify(colours ? colourRules : rules)},
         rules: { region: { enabled: document.querySelector("[data-rac][data-trigger]") === null } }
       })
       .then(({ violations }) => {
         // What is scrolled half out of its box is not too small.
         const isClipped = (element) => {
           const { bottom, top } = element.getBoundingClientRect()
           for (let box = element.parentElement; box !== null; box = box.parentElement) {
             const edge = box.getBoundingClientRect()
             const clips = getComputedStyle(box).overflowY !== "visible"
             if (clips && (top < edge.top || bottom > edge.bottom)) return true
           }
           return false
         }
         return violations
           .map(({ id, help, nodes }) => ({
             id,
             help,
             nodes: nodes
               .filter(({ target }) => id !== "target-size" || !isClipped(document.querySelector(target[0])))
               .map(({ html }) => ({ html }))
           }))
           .filter(({ nodes }) => nodes.length > 0)
       })`
  )
  const told = (violations as ReadonlyArray<Violation>).map(
    ({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 200)).join(" | ")}`
  )
  expect(told).toEqual([])
}

/** The folder for pictures; none are taken without it. */
const gallery = process.env["SCREENSHOTS"] ?? ""

/**
 * The page in light and dark, each checked for accessibility; with `SCREENSHOTS` pictured as `<name>-light.png` and
 * `<name>-dark.png`.
 */
export const look = async (page: Page, name: string): Promise<void> => {
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" })
    await expectAccessible(page, scheme === "dark")
    const wide = await page.evaluate(`
      document.documentElement.scrollWidth <= window.innerWidth + 1
        ? []
        : [...document.querySelectorAll("main *")]
            .filter((node) => node.getBoundingClientRect().right > window.innerWidth + 1)
            .slice(0, 5)
            .map((node) => node.outerHTML.slice(0, 120))`)
    expect(wide, `${name} scrolls sideways`).toEqual([])
    if (gallery === "") continue
    Fs.mkdirSync(gallery, { recursive: true })
    await page.screenshot({ path: Path.join(gallery, `${name}-${scheme}.png`), fullPage: true })
  }
}
