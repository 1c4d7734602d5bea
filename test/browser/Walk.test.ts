import * as Fs from "node:fs"
import * as Http from "node:http"
import * as Path from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import type { Browser, Locator, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, root, type Spoke, start, temporaryFolder } from "../e2e/Spoke.ts"
import { complaints, desktop, hasBrowser, launch, phone } from "./Browser.ts"
import { addressOf } from "./GalleryWorld.ts"

const owner = { email: "owner@example.com", password: "correct horse battery" }

/** More of them are no short way. */
const maxActions = 12

/** With `SPOKE_WALK` the walk takes a person's time, and the pictures of docs/walk are taken anew. */
const isShown = (process.env["SPOKE_WALK"] ?? "") !== ""
const pictures = Path.join(root, "docs/walk")
/** Milliseconds before each action, and for each key. */
const pace = isShown ? { think: 1_500, key: 80 } : { think: 0, key: 0 }

const pages: Readonly<Record<string, string>> = {
  "/": `<h1>Workshop</h1><p>We repair bicycles of all makes in Lisbon.</p>
    <h2>Opening hours</h2><p>The workshop opens at half past nine and closes at seven.</p>
    <a href="/faq">Questions</a>`,
  "/faq": `<h1>Questions</h1><h2>Do you repair electric bikes?</h2>
    <p>Yes, we repair electric bikes, except for their batteries, which go to the maker.</p>`
}

/** How a person works the pages. */
interface Hands {
  readonly type: (page: Page, field: Locator, text: string) => Promise<void>
  readonly press: (page: Page, control: Locator) => Promise<void>
}

/** True where the keys go to `control`, also within the widget. */
const hasFocus = (control: Locator): Promise<boolean> =>
  control.evaluate((element) => {
    const tree = element.getRootNode() as unknown as { readonly activeElement: unknown }
    return tree.activeElement === element
  })

/** More than there are stops on a page. */
const maxTabs = 80

const reach = async (page: Page, control: Locator) => {
  await control.waitFor()
  for (let tabs = 0; tabs < maxTabs; tabs += 1) {
    if (await hasFocus(control)) return
    await page.keyboard.press("Tab")
    await delay(pace.key)
  }
  throw new Error(`The keyboard does not reach ${String(control)}.`)
}

const keyboard: Hands = {
  type: async (page, field, text) => {
    await reach(page, field)
    await page.keyboard.type(text, { delay: pace.key })
  },
  press: async (page, control) => {
    await reach(page, control)
    await page.keyboard.press("Enter")
  }
}

const touch: Hands = {
  type: async (page, field, text) => {
    await field.tap()
    await page.keyboard.type(text, { delay: pace.key })
  },
  press: (_, control) => control.tap()
}

const picture = async (page: Page, name: string) => {
  if (!isShown) return
  Fs.mkdirSync(pictures, { recursive: true })
  const protocol = await page.context().newCDPSession(page)
  const { data } = await protocol.send("Page.captureScreenshot", { format: "webp", quality: 70 })
  Fs.writeFileSync(Path.join(pictures, `${name}.webp`), Buffer.from(data, "base64"))
  await protocol.detach()
}

for (const [way, hands, options] of [
  ["keyboard", keyboard, desktop],
  ["touch", touch, phone]
] as const) {
  describe.skipIf(!hasBrowser)(`From sign-in to a chat that answers, by ${way}`, () => {
    const dataDir = temporaryFolder()
    let script = ""
    const site = Http.createServer((request, response) => {
      const page = pages[request.url ?? ""]
      response.writeHead(page === undefined ? 404 : 200, { "content-type": "text/html; charset=utf-8" })
      response.end(
        page === undefined
          ? ""
          : `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">` +
              `<title>Workshop</title><style>body { font-family: sans-serif; margin: 2rem }</style>` +
              `<main>${page}</main>${script}</html>`
      )
    })
    let spoke: Spoke
    let browser: Browser

    beforeAll(async () => {
      await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve))
      spoke = await start(dataDir, {
        SPOKE_ADMIN_EMAIL: owner.email,
        SPOKE_ADMIN_PASSWORD: owner.password,
        SPOKE_FETCH_ALLOW: "127.0.0.1"
      })
      browser = await launch()
    }, 240_000)

    afterAll(async () => {
      await browser.close()
      await spoke.kill()
      site.close()
      removeFolder(dataDir)
    })

    it(`takes at most ${maxActions} actions`, async () => {
      const context = await browser.newContext(options)
      const page = await context.newPage()
      const wrong = complaints(page)
      const begun = performance.now()
      let actions = 0
      const act = async (action: () => Promise<unknown>) => {
        actions += 1
        await delay(pace.think)
        await action()
      }
      const type = (where: Page, field: Locator, text: string) => act(() => hands.type(where, field, text))
      const press = (where: Page, control: Locator) => act(() => hands.press(where, control))
      const shown = (where: Page, name: string) => picture(where, `${way}-${name}`)

      await page.goto(spoke.url)
      await type(page, page.getByLabel("E-mail"), owner.email)
      await type(page, page.getByLabel("Password"), owner.password)
      await shown(page, "1-sign-in")
      await press(page, page.getByRole("button", { name: "Sign in" }))

      await type(page, page.getByLabel("Homepage"), addressOf(site))
      await press(page, page.getByRole("button", { name: "Find pages" }))
      await page.getByText("2 pages were found.").waitFor()
      await shown(page, "2-pages")
      await press(page, page.getByRole("button", { name: "Read these 2 pages" }))

      const question = "Do you repair electric bikes?"
      await page.getByRole("button", { name: question }).waitFor()
      await shown(page, "3-questions")
      await press(page, page.getByRole("button", { name: question }))
      await page.getByRole("article").getByText("except for their batteries").first().waitFor()
      await page.getByRole("button", { name: "Send", exact: true }).waitFor()
      await shown(page, "4-answer")

      // Back with the browser's own key or gesture.
      await act(() => page.goBack())
      await page.frameLocator("iframe").getByRole("dialog").waitFor()
      await shown(page, "5-look")
      await press(page, page.getByRole("button", { name: "Save and get the script" }))
      const line = page.getByLabel("Script", { exact: true })
      await line.waitFor()
      await page.getByText("Everything is set up.").waitFor()
      await shown(page, "6-script")
      await press(page, page.getByRole("button", { name: "Copy" }))
      script = (await line.textContent()) ?? ""
      expect(script).toMatch(
        /^<script src="http:.+\/widget\.js" data-agent="wgt_[\w-]{43}" async><\/script>$/u
      )

      const visit = await context.newPage()
      const wrongThere = complaints(visit)
      await visit.goto(addressOf(site))
      await press(visit, visit.getByRole("button", { name: "Open chat" }))
      await visit.getByRole("button", { name: question }).waitFor()
      await shown(visit, "7-chat")
      await press(visit, visit.getByRole("button", { name: question }))
      await visit.locator(".bubble", { hasText: "except for their batteries" }).first().waitFor()
      await shown(visit, "8-reply")

      if (isShown)
        process.stdout.write(
          `${way}: ${actions} actions in ${Math.round((performance.now() - begun) / 1_000)} s\n`
        )
      expect(actions).toBeLessThanOrEqual(maxActions)
      expect([wrong, wrongThere]).toEqual([[], []])
      await context.close()
    }, 240_000)
  })
}
