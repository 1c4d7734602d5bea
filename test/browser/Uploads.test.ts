import * as Fs from "node:fs"
import * as Path from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import type { Browser, Dialog, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { maxUploadBytes } from "../../src/http/public/knowledge/SourcesApi.ts"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../e2e/Spoke.ts"
import { act, complaints, desktop, hasBrowser, launch, look, phone, signOut } from "./Browser.ts"

const owner = { SPOKE_ADMIN_EMAIL: "owner@example.com", SPOKE_ADMIN_PASSWORD: "correct horse battery" }

/** As many as are sent at a time. */
const maxSending = 3

describe.skipIf(!hasBrowser)("Uploads of many files", () => {
  const dataDir = temporaryFolder()
  const folder = Path.join(dataDir, "files")
  let spoke: Spoke
  let browser: Browser
  let page: Page
  let wrong: ReadonlyArray<string>

  const signIn = async (email: string, password: string) => {
    await page.getByLabel("E-mail").fill(email)
    await page.getByLabel("Password").fill(password)
    await page.keyboard.press("Enter")
  }
  const file = (name: string, content: string | Uint8Array): string => {
    const path = Path.join(folder, name)
    Fs.mkdirSync(Path.dirname(path), { recursive: true })
    Fs.writeFileSync(path, content)
    return path
  }
  const choose = async (files: string | ReadonlyArray<string>, open: () => Promise<void>) => {
    const opened = page.waitForEvent("filechooser")
    await open()
    await (await opened).setFiles(typeof files === "string" ? files : [...files])
  }
  const chooseFiles = (files: string | ReadonlyArray<string>) =>
    choose(files, () => page.getByRole("button", { name: "Upload files" }).first().click())
  const list = () => page.getByRole("list", { name: "Uploads" })
  const row = (name: string) =>
    list()
      .getByRole("listitem")
      .filter({ hasText: new RegExp(`^${name}`, "u") })
  const announced = (text: RegExp) =>
    until(
      () => page.getByRole("status").allTextContents(),
      (said) => said.some((one) => text.test(one)),
      30_000
    )

  beforeAll(async () => {
    spoke = await start(dataDir, owner)
    browser = await launch()
    page = await (await browser.newContext(desktop)).newPage()
    wrong = complaints(page)
    await page.goto(`${spoke.url}/`)
    await signIn(owner.SPOKE_ADMIN_EMAIL, owner.SPOKE_ADMIN_PASSWORD)
    await page.getByRole("link", { name: "Sources" }).click()
    await page.getByRole("heading", { name: "Sources", level: 1 }).waitFor()
  })

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    removeFolder(dataDir)
  })

  it("say of each file what became of it, and of those that cannot be read before they are sent", async () => {
    const sent: Array<string> = []
    page.on("request", (request) => {
      if (request.method() === "POST" && request.url().endsWith("/upload")) sent.push(request.url())
    })
    const large = file("film.txt", "")
    Fs.truncateSync(large, maxUploadBytes + 1)
    await chooseFiles([
      file("prices.md", "# Prices\n\nA bell costs twelve euros."),
      file("hours.txt", "The workshop opens at half past nine."),
      file("hours-again.txt", "The workshop opens at half past nine."),
      file("settings.conf", "lamp = on\nbell = off\n"),
      file(
        "engine.bin",
        Uint8Array.from({ length: 256 }, (_, at) => at % 9)
      ),
      file("nothing.md", ""),
      large
    ])
    for (const name of ["prices.md", "hours.txt", "settings.conf"]) {
      await row(name).getByText("Ready", { exact: true }).waitFor({ timeout: 30_000 })
    }
    await row("hours-again.txt").getByText("Not sent: “hours.txt” has the same content.").waitFor()
    await row("engine.bin").getByText("Neither a document nor a picture nor text").waitFor()
    await row("nothing.md").getByText("The file is empty.").waitFor()
    await row("film.txt").getByText("Larger than 52.4 MB.").waitFor()
    await announced(/3 of 7 added\. 4 not added\./)
    expect(sent.length).toBe(3)
    await look(page, "uploads")
    const table = page.getByRole("table", { name: "Sources" })
    await table.getByRole("link", { name: "prices.md" }).waitFor()
    await page.setViewportSize(phone.viewport ?? { width: 390, height: 844 })
    await look(page, "uploads-phone")
    await page.setViewportSize(desktop.viewport ?? { width: 1280, height: 860 })
  })

  it("name the source that has the same content, which is added again on request", async () => {
    await page.getByRole("button", { name: "Clear finished" }).click()
    await list().waitFor({ state: "detached" })
    await chooseFiles(file("copy-of-prices.md", "# Prices\n\nA bell costs twelve euros."))
    await row("copy-of-prices.md").getByText("Not sent: “prices.md” has the same content.").waitFor()
    await page.getByRole("button", { name: "Add anyway: copy-of-prices.md" }).click()
    await row("copy-of-prices.md").getByText("Ready", { exact: true }).waitFor({ timeout: 30_000 })
    await page.getByRole("button", { name: "Remove from the list: copy-of-prices.md" }).click()
    await list().waitFor({ state: "detached" })
  })

  it("take folders with the files in them by their paths, without hidden ones", async () => {
    file("manuals/pump/use.md", "# Pump\n\nPress the lever twice.")
    file("manuals/lamp/use.md", "# Lamp\n\nTurn the ring.")
    file("manuals/.cache/use.md", "# Nothing\n\nA copy.")
    await choose(Path.join(folder, "manuals"), () => act(page, "Upload folder"))
    await row("manuals/pump/use.md").getByText("Ready", { exact: true }).waitFor({ timeout: 30_000 })
    await row("manuals/lamp/use.md").getByText("Ready", { exact: true }).waitFor({ timeout: 30_000 })
    expect(await list().getByRole("listitem").count()).toBe(2)
    await page.getByRole("button", { name: "Clear finished" }).click()
  })

  it("take what is dropped without what cannot be read, which is named", async () => {
    // A folder of a file system is no DataTransfer that a script can make: its entries are played.
    await page.evaluate(`(() => {
      const entry = (name, isFile, rest) => ({ name, fullPath: "/notes/" + name, isFile, isDirectory: !isFile, ...rest })
      const fails = (_, reject) => reject(new DOMException("It could not be found.", "NotFoundError"))
      const file = (name) => entry(name, true, { file: (resolve) => resolve(new File(["# " + name], name)) })
      const batches = [
        [
          file("first.md"),
          entry("link.md", true, { file: fails }),
          entry("private", false, { createReader: () => ({ readEntries: fails }) }),
          file("last.md")
        ],
        []
      ]
      const folder = { ...entry("", false, { createReader: () => ({ readEntries: (take) => take(batches.shift()) }) }), fullPath: "/notes" }
      const event = new DragEvent("drop", { bubbles: true, cancelable: true })
      const items = [{ webkitGetAsEntry: () => folder }]
      Object.defineProperty(event, "dataTransfer", { value: { types: ["Files"], files: [], items } })
      document.querySelector("main").dispatchEvent(event)
    })()`)
    await row("notes/link.md").getByText("The browser cannot read the file.").waitFor()
    await row("notes/private").getByText("The browser cannot read the file.").waitFor()
    await row("notes/first.md").getByText("Ready", { exact: true }).waitFor({ timeout: 30_000 })
    await row("notes/last.md").getByText("Ready", { exact: true }).waitFor({ timeout: 30_000 })
    await page.getByRole("button", { name: "Clear finished" }).click()
    await list().waitFor({ state: "detached" })
  })

  it("say how many files of a large folder are taken, and end with what the service refuses to tell", async () => {
    for (let count = 0; count <= 1_000; count++) file(`many/${count}.txt`, "")
    await choose(Path.join(folder, "many"), () => act(page, "Upload folder"))
    await page.getByText("Only the first 1,000 files were taken.").first().waitFor({ timeout: 60_000 })
    await announced(/0 of 1,000 added\. 1,000 not added\./)
    await page.getByRole("button", { name: "Clear finished" }).click()
    await list().waitFor({ state: "detached" })

    let asked = 0
    // The agent has been deleted in another window.
    await page.route(/\/api\/sources\?.*limit=100/u, (route) => {
      asked += 1
      return route.fulfill({
        status: 404,
        json: { error: { code: "NOT_FOUND", message: "There is no such agent." }, meta: { requestId: "r" } }
      })
    })
    await chooseFiles(file("lost.md", "# Lost\n\nNobody knows where it went."))
    await row("lost.md").getByText("There is no such agent.").waitFor({ timeout: 30_000 })
    const before = asked
    await delay(4_000)
    expect(asked).toBe(before)
    await page.unroute(/\/api\/sources\?.*limit=100/u)
    await page.getByRole("button", { name: "Remove from the list: lost.md" }).click()
    await list().waitFor({ state: "detached" })
  })

  it("begin with a drop anywhere on the page, a few at a time, and are stopped and tried again", async () => {
    const waiting: Array<() => void> = []
    const hold = new Set(["drop-4.md"])
    await page.route("**/api/sources/upload", async (route) => {
      const body = route.request().postData() ?? ""
      await new Promise<void>((resolve) => waiting.push(resolve))
      // The connection is lost once.
      const name = [...hold].find((one) => body.includes(`filename="${one}"`))
      if (name !== undefined) {
        hold.delete(name)
        return route.abort()
      }
      return route.continue()
    })
    await page.evaluate(`(() => {
      const transfer = new DataTransfer()
      for (let n = 1; n <= 8; n++) transfer.items.add(new File(["# Part " + n + "\\n\\nIt is number " + n], "drop-" + n + ".md"))
      const main = document.querySelector("main")
      main.dispatchEvent(new DragEvent("dragover", { bubbles: true, cancelable: true, dataTransfer: transfer }))
      globalThis.dropAll = () =>
        main.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: transfer }))
    })()`)
    await page.getByText("Drop files or folders to add them").waitFor()
    await look(page, "uploads-drop")
    await page.evaluate("dropAll()")
    await page.getByText("Drop files or folders to add them").waitFor({ state: "detached" })
    await until(
      () => Promise.resolve(waiting.length),
      (count) => count === maxSending
    )
    await row("drop-8.md").getByText("Waiting").waitFor()
    await row("drop-1.md").getByText("Sending").waitFor()
    await look(page, "uploads-sending")
    expect(waiting.length).toBe(maxSending)

    // What has not been sent is lost with the page, which therefore asks first.
    const asked = new Promise<Dialog>((resolve) => page.once("dialog", resolve))
    await page.evaluate("setTimeout(() => location.reload(), 0)")
    const dialog = await asked
    expect(dialog.type()).toBe("beforeunload")
    await dialog.dismiss()

    await page.getByRole("button", { name: "Cancel: drop-8.md" }).click()
    await row("drop-8.md").waitFor({ state: "detached" })
    await page.getByRole("button", { name: "Cancel: drop-1.md" }).click()
    await row("drop-1.md").waitFor({ state: "detached" })
    // Another page of the dashboard does not stop them.
    await page.getByRole("link", { name: "Agents" }).click()
    await page.getByRole("heading", { name: "Agents", level: 1 }).waitFor()
    const release = setInterval(() => waiting.shift()?.(), 20)
    await page.getByRole("link", { name: "Sources" }).click()
    for (const name of [2, 3, 5, 6, 7].map((number) => `drop-${number}.md`)) {
      await row(name).getByText("Ready", { exact: true }).waitFor({ timeout: 30_000 })
    }
    await row("drop-4.md").getByText("The server cannot be reached. Check your connection.").waitFor()
    await announced(/1 not added\./)
    await page.getByRole("button", { name: "Try again: drop-4.md" }).click()
    await row("drop-4.md").getByText("Ready", { exact: true }).waitFor({ timeout: 30_000 })
    clearInterval(release)
    await page.unroute("**/api/sources/upload")
    const table = page.getByRole("table", { name: "Sources" })
    await table.getByRole("link", { name: "drop-7.md" }).waitFor()
    expect(await table.getByRole("link", { name: "drop-8.md" }).count()).toBe(0)
    // With nothing left to send the page is left without a question.
    await page.reload()
    await table.waitFor()
    expect(await list().count()).toBe(0)
  })

  it("show their progress in the form of a source, and end when it is cancelled", async () => {
    const table = page.getByRole("table", { name: "Sources" })
    const before = await table.getByRole("link").count()
    const held = page.waitForRequest("**/api/sources/upload")
    await page.route("**/api/sources/upload", () => undefined)
    await page.getByRole("button", { name: "Add source" }).first().click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("What it is").selectOption("Document from this computer")
    await dialog.getByLabel("File").setInputFiles(file("cancelled.md", "# Cancelled"))
    await dialog.getByRole("button", { name: "Add source" }).click()
    const request = await held
    await dialog.getByRole("button", { name: "Cancel" }).click()
    await until(
      () => Promise.resolve(request.failure()),
      (failure) => failure !== null,
      5_000
    )
    await page.unroute("**/api/sources/upload")
    expect(await page.getByText("The server cannot be reached.").count()).toBe(0)
    const protocol = await page.context().newCDPSession(page)
    const network = { offline: false, latency: 0, downloadThroughput: -1 }
    await protocol.send("Network.emulateNetworkConditions", { ...network, uploadThroughput: 100_000 })
    await page.getByRole("button", { name: "Add source" }).first().click()
    await dialog.getByLabel("What it is").selectOption("Document from this computer")
    await dialog.getByLabel("File").setInputFiles(file("long.md", "A long text. ".repeat(50_000)))
    await dialog.getByRole("button", { name: "Add source" }).click()
    await dialog.getByLabel(/^Sending: .+ of 650 kB$/u).waitFor()
    await look(page, "source-sending")
    await protocol.send("Network.emulateNetworkConditions", { ...network, uploadThroughput: -1 })
    await table.getByRole("link", { name: "long.md" }).waitFor()
    expect(await table.getByRole("link").count()).toBe(before + 1)
  })

  it("end at once when their user signs out in another tab", async () => {
    const held = page.waitForRequest("**/api/sources/upload")
    await page.route("**/api/sources/upload", () => undefined)
    await chooseFiles(file("mine.md", "# Mine"))
    const request = await held
    const other = await page.context().newPage()
    await other.goto(`${spoke.url}/app/agents`)
    await signOut(other)
    await page.getByLabel("E-mail").waitFor({ timeout: 5_000 })
    await until(
      () => Promise.resolve(request.failure()),
      (failure) => failure !== null,
      5_000
    )
    await page.unroute("**/api/sources/upload")
    // Signing in shows the other tab's page again, too.
    await signIn(owner.SPOKE_ADMIN_EMAIL, owner.SPOKE_ADMIN_PASSWORD)
    await page.getByRole("heading", { name: "Sources", level: 1 }).waitFor()
    await other.getByRole("heading", { name: "Agents", level: 1 }).waitFor({ timeout: 5_000 })
    await other.close()
    expect(await list().count()).toBe(0)
  })

  it("end when their user signs out, whoever signs in then", async () => {
    const user = { email: "other@example.com", role: "admin", password: owner.SPOKE_ADMIN_PASSWORD }
    const headers = { "x-spoke-csrf": "1" }
    expect((await page.request.post(`${spoke.url}/api/users`, { data: user, headers })).status()).toBe(201)
    const waiting: Array<() => void> = []
    let sent = 0
    let ended = 0
    page.on("requestfailed", (request) => {
      if (request.url().endsWith("/api/sources/upload")) ended += 1
    })
    await page.route("**/api/sources/upload", async (route) => {
      sent += 1
      await new Promise<void>((resolve) => waiting.push(resolve))
      await route.continue().catch(() => undefined)
    })
    await chooseFiles([1, 2, 3, 4, 5].map((number) => file(`mine-${number}.md`, `# Mine ${number}`)))
    await until(
      () => Promise.resolve(waiting.length),
      (count) => count === maxSending
    )
    await signOut(page)
    await until(
      () => Promise.resolve(ended),
      (count) => count === maxSending,
      10_000
    )
    await signIn(user.email, user.password)
    await page.getByRole("heading", { name: "Sources", level: 1 }).waitFor()
    for (const release of waiting) release()
    await delay(1_500)
    expect(sent).toBe(maxSending)
    await page.unroute("**/api/sources/upload")
    await page.reload()
    const table = page.getByRole("table", { name: "Sources" })
    await table.getByRole("link").first().waitFor()
    expect(await table.getByRole("link", { name: "mine-" }).count()).toBe(0)
  })

  it("are refused by the service with its reason, and read again when asked", async () => {
    await chooseFiles(file("broken.pdf", "%PDF-1.7\nnothing of a document"))
    await row("broken.pdf").getByText("Failed").waitFor({ timeout: 30_000 })
    await row("broken.pdf")
      .getByText(/damaged|PDF/)
      .last()
      .waitFor()
    await page.getByRole("button", { name: "Try again: broken.pdf" }).click()
    await row("broken.pdf").getByText("Failed").waitFor({ timeout: 30_000 })
    expect(wrong).toEqual([])
  })
})
