/** A server whose embedded engine ends by itself. What makes it end is in test/store/database/Panic.test.ts. */
import { once } from "node:events"
import * as Path from "node:path"
import { pathToFileURL } from "node:url"
import { afterAll, expect, it } from "vitest"
import { production, removeFolder, root, start, temporaryFolder, until } from "../Spoke.ts"

const folder = temporaryFolder()
afterAll(() => removeFolder(folder))

it.skipIf(production)(
  "A server whose own database ends says why, and ends too, so that it is started again",
  async () => {
    const preload = pathToFileURL(Path.join(root, "test/faults/panic.mjs")).href
    const variables = { SPOKE_EMBEDDING_MODEL: "offline" }
    const spoke = await start(folder, { ...variables, NODE_OPTIONS: `--import=${preload}` })
    const { body } = await spoke.request("POST", "/v1/chat", { body: { message: "How do I add a source?" } })
    const ended = once(spoke.process, "exit")
    spoke.process.kill("SIGUSR2")
    const status = () =>
      spoke.request("GET", "/v1/conversations").then(
        (answer) => answer.status,
        () => "refused"
      )
    // A worker may be the first to notice, and the listener is closed then.
    expect([503, "refused"]).toContain(await until(status, (found) => found !== 200))
    expect((await ended)[0]).toBe(1)
    expect(spoke.output()).toContain("Make room on its disk, and start again")

    const again = await start(folder, variables)
    const found = await again.request("GET", `/v1/conversations/${body.data.conversationId}`)
    expect(found.status).toBe(200)
    expect(await again.stop()).toBe(0)
  },
  240_000
)
