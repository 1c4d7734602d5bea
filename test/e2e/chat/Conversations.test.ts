/** Conversations on a running server: imported with the command, read with a key and in the dashboard, kept apart. */
import * as Fs from "node:fs"
import * as Path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, run, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"
import { makeTeam, type Team } from "../Team.ts"

const dataDir = temporaryFolder()
let spoke: Spoke
let team: Team
let other: Team
let key = ""
let foreign = ""

beforeAll(async () => {
  spoke = await start(dataDir)
  team = await makeTeam(spoke)
  other = await makeTeam(spoke)
  key = (await team.key()).secret
  foreign = (await other.key()).secret
})

afterAll(async () => {
  await spoke.kill()
  removeFolder(dataDir)
})

const get = (path: string, by = key) => spoke.request("GET", path, { key: by })

const line = (id: number, fields: object = {}) =>
  JSON.stringify({
    id: `old-${id}`,
    externalEndUserId: `user-${id % 7}`,
    messages: [
      { role: "user", content: `Question ${id}`, createdAt: "2021-03-04T05:06:07.000Z" },
      { role: "assistant", content: `Answer ${id}`, createdAt: "2021-03-04T05:06:08.000Z" }
    ],
    ...fields
  })

/** Follows the cursors to the end. */
const walk = async (path: string) => {
  const rows: Array<{ readonly id: string; readonly content: string }> = []
  let cursor = ""
  for (;;) {
    const { status, body } = await get(`${path}&cursor=${cursor}`.replace(/&cursor=$/u, ""))
    expect(status).toBe(200)
    rows.push(...(body.data.messages ?? body.data.conversations))
    if (body.data.nextCursor === null) return rows
    cursor = encodeURIComponent(body.data.nextCursor)
  }
}

describe("Conversations", () => {
  it("are imported from a file while the server runs, each once, and every bad line is named", async () => {
    const file = Path.join(dataDir, "conversations.jsonl")
    const lines = Array.from({ length: 1_200 }, (_, place) => line(place))
    lines[40] = "{"
    lines[1_100] = line(1_100, { agentId: "agt_unknown" })
    Fs.writeFileSync(file, `${lines.join("\n")}\n`)
    const first = await run(["import", file, "--agent", team.agentId], { SPOKE_DATA_DIR: dataDir })
    expect(first).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^1198 conversations with 2396 messages/u)
    })
    expect(first.stderr.split("\n").filter((text) => /^line \d+: /u.test(text))).toEqual([
      "line 41: Expected a JSON object with messages",
      "line 1101: agentId: There is no such agent"
    ])
    lines[40] = line(40)
    lines[1_100] = line(1_100)
    Fs.writeFileSync(file, lines.join("\n"))
    const again = await run(["import", file, "--agent", team.agentId], { SPOKE_DATA_DIR: dataDir })
    expect(again).toMatchObject({
      code: 0,
      stdout: "2 conversations with 4 messages imported, 1198 existed already\n"
    })
    const listed = await walk("/v1/conversations?limit=100")
    expect(new Set(listed.map(({ id }) => id)).size).toBe(1_200)
    expect((await get("/v1/conversations", foreign)).body.data.conversations).toEqual([])
    expect((await run(["import", file], { SPOKE_URL: spoke.url, SPOKE_OPERATOR_TOKEN: "wrong" })).code).toBe(
      1
    )
    expect((await run(["import", Path.join(dataDir, "none.jsonl")], { SPOKE_DATA_DIR: dataDir })).code).toBe(
      1
    )
  }, 60_000)

  it("that were imported go on with a turn, and are read in order by key and dashboard alike", async () => {
    const [{ id } = { id: "" }] = await walk("/v1/conversations?limit=100")
    const turn = await spoke.request("POST", "/v1/chat", {
      key,
      body: { message: "And now?", conversationId: id }
    })
    expect(turn.status).toBe(200)
    const whole = await until(
      () => get(`/v1/conversations/${id}`),
      ({ status }) => status !== 503,
      20_000
    )
    const contents = whole.body.data.messages.map(({ content }: { content: string }) => content)
    expect(contents.slice(0, 3)).toEqual([
      expect.stringMatching(/^Question/u),
      expect.stringMatching(/^Answer/u),
      "And now?"
    ])
    expect(contents[3]).toBe(turn.body.data.reply)
    expect(contents.length).toBe(4)
    expect(await walk(`/v1/conversations/${id}/messages?limit=1`)).toEqual(whole.body.data.messages)
    const shown = await team.owner("GET", `/api/conversations/${id}`)
    expect(shown.body.data).toMatchObject({
      state: "AI_ACTIVE",
      channel: "api",
      messages: whole.body.data.messages
    })
  }, 60_000)

  it("of a tenant are for its own keys and users alone", async () => {
    const { body } = await get("/v1/conversations?limit=1")
    const [{ id }] = body.data.conversations
    for (const suffix of ["", "/messages"]) {
      expect((await get(`/v1/conversations/${id}${suffix}`, foreign)).status).toBe(404)
      expect((await other.owner("GET", `/api/conversations/${id}${suffix}`)).status).toBe(404)
      expect((await get(`/api/conversations/${id}${suffix}`)).status).toBe(401)
    }
    const retrieve = (await team.key({ permissions: ["retrieve"] })).secret
    for (const path of ["", `/${id}`, `/${id}/messages`]) {
      expect((await get(`/v1/conversations${path}`, retrieve)).body.error.code).toBe("FORBIDDEN")
    }
    const own = await team.owner(
      "GET",
      `/api/conversations?agentId=${team.agentId}&channel=api&state=AI_ACTIVE`
    )
    expect(own.body.data.conversations.length).toBe(20)
    const theirs = await other.owner("GET", `/api/conversations?agentId=${team.agentId}`)
    expect(theirs.body.data.conversations).toEqual([])
  }, 60_000)
})
