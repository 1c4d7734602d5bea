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
/** What is checked: all rules, those that depend on where things stand, or those that depend on colours. */
const scopes = {
  all: rules,
  layout: {
    type: "rule",
    values: ["color-contrast", "link-in-text-block", "target-size", "scrollable-region-focusable"]
  },
  colours: { type: "rule", values: ["color-contrast", "link-in-text-block"] }
} as const

interface Violation {
  readonly id: string
  readonly help: string
  readonly nodes: ReadonlyArray<{ readonly html: string }>
}

/** No violation of WCAG 2.2 A and AA, as far as a program can tell. */
export const expectAccessible = async (
  page: Page,
  scope: keyof typeof scopes = "all",
  name = page.url()
): Promise<void> => {
  // Evaluated by the debugger, which the page's policy does not bind.
  if (!(await page.evaluate("window.axe !== undefined"))) await page.evaluate(axe)
  const violations = await page.evaluate(
    `axe.run(document, { runOnly: ${JSON.stringify(scopes[scope])} })
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
  expect(told, `${name} is not accessible`).toEqual([])
}

/** Does what the menu of the page, or of the row `of`, offers as `action`. */
export const act = async (page: Page, action: string, of?: string): Promise<void> => {
  const name = of === undefined ? "More actions" : `More actions: ${of}`
  await page.getByRole("button", { name, exact: true }).click()
  await page.getByRole("menuitem", { name: action, exact: true }).click()
}

/** Goes to the part `name` of the agent that is shown, by its link in the navigation. */
export const openPart = async (page: Page, name: string): Promise<void> => {
  const navigation = page.getByRole("navigation", { name: /^(Main navigation|Hauptnavigation)$/u })
  await page.getByRole("heading", { level: 1 }).waitFor()
  // On a phone it is behind a button.
  if ((await navigation.count()) === 0) await page.getByRole("button", { name: /^(Menu|Menü)$/u }).click()
  await navigation.getByRole("link", { name, exact: true }).click()
}

/** Signs out, by the menu of the account. */
export const signOut = async (page: Page): Promise<void> => {
  await page.getByRole("button", { name: "Your account" }).click()
  await page.getByRole("button", { name: "Sign out" }).click()
}

/** The folder for pictures; none are taken without it. */
const gallery = process.env["SCREENSHOTS"] ?? ""

/** Nothing of the page is cut off at its side. */
const expectFits = async (page: Page, name: string): Promise<void> => {
  const wide = await page.evaluate(`
      document.documentElement.scrollWidth <= window.innerWidth + 1
        ? []
        : [...document.querySelectorAll("main *")]
            .filter((node) => node.getBoundingClientRect().right > window.innerWidth + 1)
            .slice(0, 5)
            .map((node) => node.outerHTML.slice(0, 120))`)
  expect(wide, `${name} scrolls sideways`).toEqual([])
}

const keepPicture = async (page: Page, name: string): Promise<void> => {
  if (gallery === "") return
  Fs.mkdirSync(gallery, { recursive: true })
  await page.screenshot({ path: Path.join(gallery, `${name}.png`), fullPage: true })
}

/**
 * The page in light and dark, each checked for accessibility; with `SCREENSHOTS` pictured as `<name>-light.png` and
 * `<name>-dark.png`.
 */
export const look = async (page: Page, name: string): Promise<void> => {
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" })
    await expectAccessible(page, scheme === "dark" ? "colours" : "all")
    await expectFits(page, name)
    await keepPicture(page, `${name}-${scheme}`)
  }
}

/** In pixels. Fingers are used up to 768. */
const allWidths = [390, 768, 1024, 1440, 1920] as const
type Width = (typeof allWidths)[number]

/** With `SPOKE_GALLERY_WIDTHS=all` each page is checked at all five, in light and dark. That takes twice as long. */
const isWhole = process.env["SPOKE_GALLERY_WIDTHS"] === "all"

/** The viewport of `page` in place, without a new load: what a window shows whose size is changed. */
const resizer = async (page: Page) => {
  const protocol = await page.context().newCDPSession(page)
  return async (width: Width) => {
    await protocol.send("Emulation.setTouchEmulationEnabled", { enabled: width <= 768 })
    await page.setViewportSize({ width, height: width === 390 ? 844 : width === 1920 ? 1080 : 900 })
    // What depends on the size has been drawn.
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
  }
}

/** By key what is on the page; pages whose layout does not differ have the same. */
const layout = `[...document.querySelectorAll("main *, aside *, [role=dialog] *")]
  .map((node) => (node.checkVisibility() ? getComputedStyle(node).flexDirection[0] : "-"))
  .join("")`

/**
 * Looks at what `page` shows: at the width `home`, at which the page was loaded and which it has afterwards, in light and
 * dark, and at `other` in light. All rules are checked at home in light; those about colours in dark; those about layout
 * and colours wherever the layout differs from what was checked before.
 */
export const beholder = async (
  page: Page,
  home: Width,
  other: Width
): Promise<(name: string, keep: (width: Width) => boolean) => Promise<void>> => {
  const resize = await resizer(page)
  await resize(home)
  const others = isWhole ? allWidths.filter((width) => width !== home) : [other]
  return async (name, keep) => {
    const seen = new Set<unknown>()
    for (const width of [home, ...others]) {
      if (width !== home) await resize(width)
      await expectFits(page, `${name} at ${width}`)
      const found = await page.evaluate(layout)
      const isNew = !seen.has(found)
      seen.add(found)
      for (const scheme of ["light", "dark"] as const) {
        const isPictured = gallery !== "" && keep(width)
        const isChecked = isNew && (scheme === "light" || width === home || isWhole)
        if (!isChecked && !isPictured) continue
        await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" })
        if (isChecked) {
          const scope = scheme === "dark" ? "colours" : width === home ? "all" : "layout"
          await expectAccessible(page, scope, `${name} at ${width}`)
        }
        if (isPictured) await keepPicture(page, `${name}-${width}-${scheme}`)
      }
    }
    await resize(home)
    await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" })
  }
}

/** What moves by itself on a page, as browsers count it, and the beginnings of the elements that moved. */
interface Shifts {
  readonly value: number
  readonly elements: ReadonlyArray<string>
}

/** Adds up what moves by itself on each page that is loaded from now on. */
export const watchShifts = async (page: Page): Promise<() => Promise<Shifts>> => {
  await page.addInitScript(`
    window.shifts = { value: 0, elements: [] }
    new PerformanceObserver((list) => {
      for (const { hadRecentInput, sources, value } of list.getEntries()) {
        if (hadRecentInput) continue
        window.shifts.value += value
        for (const { node } of sources) window.shifts.elements.push(node?.outerHTML?.slice(0, 80) ?? node?.textContent ?? "")
      }
    }).observe({ type: "layout-shift", buffered: true })`)
  return () => page.evaluate<Shifts>("window.shifts")
}
