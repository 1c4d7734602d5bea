import type * as Http from "node:http"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../e2e/Spoke.ts"
import { beholder, complaints, desktop, hasBrowser, launch, watchRequests, watchShifts } from "./Browser.ts"
import { addressOf, fill, type Gallery, site } from "./GalleryWorld.ts"

const owner = { email: "owner@example.com", password: "correct horse battery" }

/**
 * Each language with the width at which pages are loaded, and another one. German words are longer: the harder case on a
 * phone.
 */
const views = [
  ["en", 1440, 1920, { ...desktop, locale: "en-GB" }],
  ["de", 390, 1440, { ...desktop, locale: "de-DE" }]
] as const

/** What may move by itself while a page loads, as browsers count it. */
const maxShift = 0.02

/** Sentences of the dashboard's own in English: those of people, sources and models are in elements that say so, or in theirs. */
const untranslated = (page: Page): Promise<ReadonlyArray<string>> =>
  page.evaluate(`(() => {
    const english = /\\b(the|this|that|and|with|from|yet|is|are|been|your|you)\\b/i
    const theirs = 'article, noscript, .visually-hidden[role], .visually-hidden[aria-live], code, pre, textarea, [lang="en"], [lang=""], a[href*="/conversations/"], a[href*="/sources/"], a[href*="/agents/"], h1, td, dd, select, [role=option]'
    const found = []
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    while (walker.nextNode()) {
      const { parentElement, textContent } = walker.currentNode
      if (parentElement.closest(theirs) === null && english.test(textContent)) found.push(textContent)
    }
    return found
  })()`)

/** By name, the path of each page. */
const pagesOf = ({ agentId, conversations, documentId, failedId, freshId, museum, sourceId }: Gallery) =>
  ({
    start: "/app/start",
    "start-agent": `/app/start?agent=${agentId}`,
    agents: "/app/agents",
    "agent-try": `/app/agents/${agentId}`,
    "agent-try-fresh": `/app/agents/${freshId}`,
    "agent-try-compare": `/app/agents/${agentId}/try?compare`,
    ...Object.fromEntries(
      [
        "sources",
        "settings",
        "versions",
        "cases",
        "experiments",
        "keys",
        "tools",
        "channels",
        "widget"
      ].flatMap((tab) => [
        [`agent-${tab}`, `/app/agents/${agentId}/${tab}`],
        [`agent-${tab}-fresh`, `/app/agents/${freshId}/${tab}`]
      ])
    ),
    ...Object.fromEntries(
      ["wrong", "corrections", "findings", "impact", "values"].flatMap((part) => [
        [`improve-${part}`, `/app/agents/${museum.agentId}/improve?part=${part}`],
        [`improve-${part}-fresh`, `/app/agents/${freshId}/improve?part=${part}`]
      ])
    ),
    "improve-draft": `/app/agents/${museum.agentId}/improve?part=corrections&correction=${museum.draftId}`,
    "improve-approved": `/app/agents/${museum.agentId}/improve?part=corrections&correction=${museum.approvedId}`,
    "improve-replay": `/app/agents/${museum.agentId}/improve?part=impact&replay=${museum.replayId}`,
    sources: `/app/sources?agent=${agentId}`,
    "sources-fresh": `/app/sources?agent=${freshId}`,
    source: `/app/sources/${sourceId}`,
    document: `/app/sources/${sourceId}/documents/${documentId}`,
    "source-failed": `/app/sources/${failedId}`,
    conversations: "/app/conversations",
    ...Object.fromEntries(
      Object.entries(conversations).map(([state, id]) => [
        `conversation-${state}`,
        `/app/conversations/${id}`
      ])
    ),
    insights: "/app/insights",
    "insights-languages": "/app/insights?by=language",
    usage: "/app/usage",
    people: "/app/people",
    team: "/app/team",
    webhooks: "/app/webhooks",
    tokens: "/app/tokens",
    audit: "/app/audit",
    retention: "/app/retention",
    sessions: "/app/sessions",
    "single-sign-on": "/app/single-sign-on",
    "not-found": "/app/nowhere",
    "no-agent": "/app/agents/agt_nobody",
    "no-source": "/app/sources/src_nobody",
    "no-conversation": "/app/conversations/cnv_nobody"
  }) as Readonly<Record<string, string>>

interface DialogView {
  readonly page: string
  /** The button that opens the dialog, or its menu. */
  readonly button: RegExp
  readonly item?: RegExp
}

/** By name, how each dialog is opened. */
const dialogs: Readonly<Record<string, DialogView>> = {
  agent: { page: "agents", button: /New agent|Neuer Agent/ },
  source: { page: "agent-sources", button: /Add source|Quelle hinzufügen/ },
  key: { page: "agent-keys", button: /New key|Neuer Schlüssel/ },
  "key-limit": {
    page: "agent-keys",
    button: /(?:More actions|Weitere Aktionen): Website/,
    item: /Limit|Grenze/
  },
  case: { page: "agent-cases", button: /New test case|Neuer Testfall/ },
  "case-import": {
    page: "agent-cases",
    button: /^(?:More actions|Weitere Aktionen)$/,
    item: /Import|Importieren/
  },
  experiment: { page: "agent-experiments", button: /Run test cases|Testfälle stellen/ },
  "experiment-results": { page: "agent-experiments", button: /^(?:Show|Zeigen)/ },
  tool: { page: "agent-tools", button: /New tool|Neues Werkzeug/ },
  "tool-edit": {
    page: "agent-tools",
    button: /(?:More actions|Weitere Aktionen): handbook/,
    item: /Edit|Bearbeiten/
  },
  "tool-test": {
    page: "agent-tools",
    button: /(?:More actions|Weitere Aktionen): order_status/,
    item: /^Test(?:en)?$/
  },
  channel: { page: "agent-channels", button: /New channel|Neuer Kanal/ },
  "canned-replies": { page: "conversation-taken", button: /Canned replies|Textbausteine/ },
  correction: { page: "document", button: /Write a correction|Korrektur schreiben/ },
  webhook: { page: "webhooks", button: /New webhook|Neuer Webhook/ },
  token: { page: "tokens", button: /New token|Neues Token/ },
  budget: { page: "usage", button: /Set budget|Budget setzen/ },
  invitation: { page: "team", button: /Invite somebody|Jemanden einladen/ },
  account: { page: "audit", button: /Your account|Ihr Konto/ }
}

describe.skipIf(!hasBrowser)("Every page of the dashboard", () => {
  const dataDir = temporaryFolder()
  const workshop: Http.Server = site()
  let spoke: Spoke
  let browser: Browser
  let gallery: Gallery

  const settled = async (page: Page, quiet: () => Promise<void>) => {
    await page.getByRole("heading", { level: 1 }).first().waitFor()
    await quiet()
    // The page's policy lets nothing wait within it.
    const loading =
      "[...document.querySelectorAll('[role=status]')].some((node) => /Loading|Lädt/.test(node.textContent))"
    await until(
      () => page.evaluate(loading),
      (found) => found === false
    )
  }

  beforeAll(async () => {
    await new Promise<void>((resolve) => workshop.listen(0, "127.0.0.1", resolve))
    spoke = await start(dataDir, {
      SPOKE_ADMIN_EMAIL: owner.email,
      SPOKE_ADMIN_PASSWORD: owner.password,
      SPOKE_FETCH_ALLOW: "127.0.0.1"
    })
    gallery = await fill(spoke, owner, addressOf(workshop))
    browser = await launch()
  }, 240_000)

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    workshop.close()
    removeFolder(dataDir)
  })

  for (const role of ["viewer", "agent"] as const) {
    it(`is shown to a member with the role ${role}, who is refused nothing there`, async () => {
      const context = await browser.newContext(desktop)
      const page = await context.newPage()
      const wrong = complaints(page)
      const quiet = watchRequests(page)
      const refused: Array<string> = []
      page.on("response", (response) => {
        if (response.status() === 403) refused.push(`${page.url()} asked for ${response.url()}`)
      })
      await page.goto(`${spoke.url}/`)
      await page.getByLabel("E-mail").fill(gallery.members[role])
      await page.getByLabel("Password").fill(gallery.members.password)
      await page.keyboard.press("Enter")
      await page.getByRole("heading", { name: "Agents" }).waitFor()
      for (const [name, path] of Object.entries(pagesOf(gallery))) {
        if (
          /^(start|people|audit|retention|single-sign-on|tokens|webhooks|agent-keys|agent-widget)/u.test(name)
        )
          continue
        if (role === "viewer" && /^agent-(?:try|experiments)/u.test(name)) continue
        await page.goto(`${spoke.url}${path}`)
        await settled(page, quiet)
        const said = name === "source-failed" ? ["The page answered 404. Check the address."] : []
        expect([name, await page.getByRole("alert").allTextContents()]).toEqual([name, said])
      }
      expect([refused, wrong]).toEqual([[], []])
      await context.close()
    }, 120_000)
  }

  for (const [language, home, other, options] of views) {
    it(`is accessible, fits, stands still and complains of nothing: ${language}, light and dark`, async () => {
      const context = await browser.newContext(options)
      const page = await context.newPage()
      const wrong = complaints(page)
      const quiet = watchRequests(page)
      const shifts = await watchShifts(page)
      const behold = await beholder(page, home, other)
      const moved: Array<string> = []
      const keep = (width: number) => width !== 768 && width !== 1024
      const picture = async (name: string, path: string) => {
        await page.goto(`${spoke.url}${path}`)
        await settled(page, quiet)
        expect(await page.locator("html").getAttribute("lang")).toBe(language)
        const { elements, value } = await shifts()
        if (value > maxShift) moved.push(`${name}: ${value.toFixed(3)} by ${elements.join(", ")}`)
        await behold(`gallery-${name}-${language}`, keep)
        if (language === "de") expect([name, await untranslated(page)]).toEqual([name, []])
      }
      await picture("sign-in", "/")
      await picture("welcome", gallery.invitation)
      await page.goto(`${spoke.url}/`)
      await page.getByLabel(/^E-?mail/i).fill(owner.email)
      await page.getByLabel(/^(Password|Passwort)/).fill(owner.password)
      await page.keyboard.press("Enter")
      await page.getByRole("heading", { name: /^(Start|Erste Schritte)$/ }).waitFor()
      const pages = pagesOf(gallery)
      for (const [name, path] of Object.entries(pages)) await picture(name, path)
      for (const [name, view] of Object.entries(dialogs)) {
        await page.goto(`${spoke.url}${pages[view.page]}`)
        const opener = page.getByRole("button", { name: view.button })
        // The account is behind the menu of a phone.
        if (home === 390 && name === "account")
          await page.getByRole("button", { name: /^(?:Menu|Menü)$/ }).click()
        await opener.click()
        if (view.item !== undefined) await page.getByRole("menuitem", { name: view.item }).click()
        await until(
          () =>
            page.getByRole("dialog").evaluate((dialog) => dialog.checkVisibility({ opacityProperty: true })),
          (visible) => visible
        )
        await behold(`gallery-dialog-${name}-${language}`, keep)
        if (language === "de") expect([name, await untranslated(page)]).toEqual([name, []])
      }
      expect([wrong, moved]).toEqual([[], []])
      await context.close()
    }, 600_000)
  }
})
