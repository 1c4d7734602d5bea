import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../../e2e/Spoke.ts"
import { type Served, servePages } from "../../servers/Loopback.ts"
import { desktop, hasBrowser, launch, phone } from "../Browser.ts"

/** Properties of the widget's parts that depend on the page's style sheets. */
const styles = `(() => {
  const host = document.querySelector("spoke-chat")
  const launcher = getComputedStyle(host.shadowRoot.querySelector(".launcher"))
  const dialog = getComputedStyle(host.shadowRoot.querySelector("[role=dialog]"))
  const outer = getComputedStyle(host)
  return [
    ...["backgroundColor", "color", "letterSpacing", "textTransform"].map((name) => launcher[name]),
    ...["color", "fontFamily", "fontSize", "lineHeight", "visibility", "colorScheme"].map((name) => dialog[name]),
    ...["position", "zIndex", "opacity", "transform", "display"].map((name) => outer[name])
  ]
})()`

describe.skipIf(!hasBrowser)("The widget, on a page that knows nothing of it,", () => {
  const dataDir = temporaryFolder()
  let spoke: Spoke
  let browser: Browser
  let page: Page
  let html = ""
  let site: Served

  /** A page with the widget's script after `body`. */
  const visit = async (body: string, attributes = "", options: BrowserContextOptions = desktop) => {
    const context = await browser.newContext(options)
    page = await context.newPage()
    html = `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Shop</title>
      <body>${body}<script src="${spoke.url}/widget.js" data-key="${spoke.apiKey}" ${attributes}></script></body></html>`
    await page.goto(`${site.url}/`)
    return context
  }

  const field = () => page.getByLabel("Message", { exact: true })
  const open = async () => {
    await page.getByRole("button", { name: "Open chat" }).click()
    await field().waitFor()
  }

  /** Runs `statements` with an `element` of the widget. */
  const inWidget = (selector: string, statements: string) =>
    page.evaluate(
      `((element) => { ${statements} })(document.querySelector("spoke-chat").shadowRoot.querySelector("${selector}"))`
    )

  beforeAll(async () => {
    spoke = await start(dataDir)
    browser = await launch()
    site = await servePages(() => html)
  }, 60_000)

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    site.close()
    removeFolder(dataDir)
  })

  it("looks the same whatever the page's style sheets say", async () => {
    const context = await visit("<main>Shop</main>", "data-open")
    await field().waitFor()
    const before = await page.evaluate(styles)
    await page.addStyleTag({
      content: `:root { --brand: 255 230 0; --on-brand: red; }
        * { color: red; font: 30px/3 serif; letter-spacing: 9px; text-transform: uppercase; visibility: hidden; }
        body > * { position: relative; z-index: 1; opacity: 0.2; transform: translateX(0); display: none; color-scheme: dark; }`
    })
    expect(await page.evaluate(styles)).toEqual(before)
    await context.close()
  })

  it("is not printed", async () => {
    const context = await visit("<main>Shop</main>", "data-open")
    await field().waitFor()
    await page.emulateMedia({ media: "print" })
    expect(await field().isVisible()).toBe(false)
    expect(await page.locator(".launcher").isVisible()).toBe(false)
    await context.close()
  })

  it("stays, with what was typed, when the page replaces its body or empties it", async () => {
    const context = await visit("<main>Shop</main>")
    await open()
    await field().fill("Half a question")
    await page.evaluate(`document.body.replaceWith(document.createElement("body"))`)
    expect(await field().inputValue()).toBe("Half a question")
    const scroller = page.getByRole("region", { name: "Conversation" })
    await scroller.evaluate((element) => {
      element.querySelector("ol")?.setAttribute("style", "min-height: 3000px")
      element.scrollTo(0, 500)
    })
    await page.evaluate("new Promise(requestAnimationFrame)")
    await page.evaluate(`document.body.innerHTML = "<main>Another page</main>"`)
    expect(await field().inputValue()).toBe("Half a question")
    expect(await scroller.evaluate((element) => element.scrollTop)).toBe(500)
    await page.evaluate(`document.documentElement.innerHTML = "<body></body>"`)
    expect(await field().inputValue()).toBe("Half a question")
    await page.evaluate("Spoke.destroy()")
    await page.evaluate(`document.body.innerHTML = ""`)
    expect(await page.locator("spoke-chat").count()).toBe(0)
    await context.close()
  })

  it("does not trigger the page's keyboard shortcuts while the visitor types", async () => {
    const context = await visit(
      `<input id="search" aria-label="Search"><script>
        for (const type of ["keydown", "keypress", "keyup"])
          document.addEventListener(type, ({ key, target }) => {
            if (key === "s" && !target.matches("input, textarea")) document.getElementById("search").focus()
          })
      </script>`
    )
    await open()
    await field().focus()
    await page.keyboard.type("shops")
    expect(await field().inputValue()).toBe("shops")
    await context.close()
  })

  it("leaves the focus in the field in which the visitor types when it opens by itself", async () => {
    const context = await visit(`<input autofocus aria-label="Search">`, "data-open")
    await field().waitFor()
    await page.keyboard.type("lamps")
    expect(await page.getByLabel("Search").inputValue()).toBe("lamps")
    await context.close()
  })

  it("takes the focus when it opens by itself and covers the page, and leaves it beside the page", async () => {
    for (const body of ["<main>Shop</main>", `<input autofocus aria-label="Search">`]) {
      const narrow = await visit(body, "data-open", phone)
      await until(
        () => page.evaluate("document.activeElement.shadowRoot?.activeElement?.getAttribute('role')"),
        (role) => role === "dialog"
      )
      await page.keyboard.press("Escape")
      expect(await page.getByRole("dialog").count()).toBe(0)
      await narrow.close()
    }
    const wide = await visit("<main>Shop</main>", "data-open")
    await field().waitFor()
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    expect(await page.evaluate("document.activeElement.localName")).toBe("body")
    await wide.close()
  })

  it("gives the focus to its button when it is closed on a narrow page", async () => {
    const context = await visit("<main>Shop</main>", "", phone)
    await open()
    await page.keyboard.press("Escape")
    await until(
      () => page.evaluate(`document.activeElement.shadowRoot?.activeElement?.getAttribute("aria-label")`),
      (label) => label === "Open chat"
    )
    await context.close()
  })

  it("keeps the focus of Tab inside while it covers a narrow page, and lets it out on a wide one", async () => {
    for (const [options, isInside] of [
      [phone, true],
      [desktop, false]
    ] as const) {
      const context = await visit(`<a href="#">Before</a>`, "", options)
      await open()
      expect(await page.getByRole("dialog").getAttribute("aria-modal")).toBe(String(isInside))
      for (const key of ["Tab", "Shift+Tab"]) {
        await field().focus()
        const reached = new Set<unknown>()
        for (let presses = 0; presses < 12; presses++) {
          await page.keyboard.press(key)
          reached.add(await page.evaluate("document.activeElement.localName"))
        }
        expect([key, !reached.has("a") && !reached.has("body")]).toEqual([key, isInside])
      }
      await context.close()
    }
  })

  it("has readable text on any colour that the page's style sheets resolve", async () => {
    const colors = ["var(--brand)", "oklch(0.95 0.1 100)", "color-mix(in srgb, white 90%, black)", "gold"]
    const textColor = `getComputedStyle(document.querySelector("spoke-chat").shadowRoot.querySelector(".launcher")).color`
    for (const color of colors) {
      const context = await visit("<style>:root { --brand: #ffe600 }</style>", `data-accent="${color}"`)
      await page.getByRole("button", { name: "Open chat" }).waitFor()
      expect([color, await page.evaluate(textColor)]).toEqual([color, "rgb(0, 0, 0)"])
      await context.close()
    }
    const context = await visit("<style>:root { --brand: navy }</style>", `data-accent="var(--brand)"`)
    await page.getByRole("button", { name: "Open chat" }).waitFor()
    expect(await page.evaluate(textColor)).toBe("rgb(255, 255, 255)")
    await context.close()
  })

  it("does not send what an input method is still composing, in Safari too", async () => {
    const context = await visit("<main>Shop</main>")
    await open()
    await field().fill("こんにちは")
    // Safari ends the composition before the key event that ended it.
    await inWidget(
      "textarea",
      `element.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", keyCode: 229, bubbles: true, cancelable: true }))`
    )
    expect(await field().inputValue()).toBe("こんにちは")
    await context.close()
  })

  it("pastes the text of cells, which spreadsheets also offer as a picture", async () => {
    const context = await visit("<main>Shop</main>")
    await open()
    const isTakenAsFile = await inWidget(
      "textarea",
      `const clipboardData = new DataTransfer()
      clipboardData.setData("text/plain", "1, 2")
      clipboardData.setData("text/html", "<table><tr><td>1<td>2</table>")
      clipboardData.items.add(new File(["a"], "image.png", { type: "image/png" }))
      return !element.dispatchEvent(
        new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData })
      )`
    )
    expect(isTakenAsFile).toBe(false)
    await context.close()
  })

  it("says that a message is too long, and cuts nothing of it", async () => {
    const context = await visit("<main>Shop</main>")
    await open()
    await field().focus()
    // As pasting does.
    await page.keyboard.insertText("a".repeat(32_001))
    await page.keyboard.press("Enter")
    await page.getByText("The message is too long.").waitFor()
    expect((await field().inputValue()).length).toBe(32_001)
    await page.keyboard.press("Backspace")
    await page.getByText("The message is too long.").waitFor({ state: "detached" })
    await page.keyboard.press("Enter")
    await page.locator(".mine").waitFor()
    await context.close()
  })

  it("takes files that are dropped anywhere on it, so that the page is not left for them", async () => {
    const context = await visit("<main>Shop</main>")
    await open()
    const isTaken = await inWidget(
      ".scroller",
      `const dataTransfer = new DataTransfer()
      dataTransfer.items.add(new File(["a"], "a.png", { type: "image/png" }))
      const give = (type) =>
        !element.dispatchEvent(
          new DragEvent(type, { bubbles: true, cancelable: true, composed: true, dataTransfer })
        )
      return [give("dragover"), give("drop")]`
    )
    expect(isTaken).toEqual([true, true])
    await page.getByRole("button", { name: "Remove a.png" }).waitFor()
    await context.close()
  })
})
