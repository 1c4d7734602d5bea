/** Fills a database of the current version over HTTP, and writes it as a fixture (Releases.ts). */
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { gzipSync } from "node:zlib"
import * as Pg from "pg"
import type { ModelStub } from "../../servers/ModelStub.ts"
import { binaries } from "../../servers/PostgresServer.ts"
import { awkwardRows } from "../AwkwardRows.ts"
import { freshDatabase } from "../Fleet.ts"
import { ask, makeTenant, makeWorld, type World } from "../routes/RouteWorld.ts"
import { root, type Spoke, start, until } from "../Spoke.ts"
import { type Client, readAsClient, type Release, retrieve } from "./Releases.ts"

const marks = ["walnut", "harbour"] as const
const guides = ["tools.md", "retrieval.md"]
const conversations = 6
const turns = 4

const secret = "a secret of these tests, thirty-two bytes"
const operatorToken = "operator"

/** The data of a successful answer; throws for any other. */
const dataOf = async (answer: ReturnType<typeof ask>) => {
  const { status, text } = await answer
  if (status >= 300) throw new Error(`${status} ${text}`)
  return JSON.parse(text).data
}

/** Uploads a few pages of documentation, and waits for their vectors. */
const uploadGuides = async (spoke: Spoke, { key }: World) => {
  for (const name of guides) {
    const form = new FormData()
    form.append("file", new Blob([Fs.readFileSync(Path.join(root, "docs", name))]), name)
    const { source } = await dataOf(ask(spoke, "POST", "/v1/sources/upload", { key, body: form }))
    await until(
      () => dataOf(ask(spoke, "GET", `/v1/sources/${source.id}/embedding`, { key })),
      ({ chunks, embedded }) => chunks > 0 && embedded === chunks,
      120_000
    )
  }
}

/** Several conversations of several turns. */
const haveConversations = async (spoke: Spoke, { key, mark }: World) => {
  for (let person = 0; person < conversations; person++) {
    let conversationId: string | undefined
    for (let turn = 0; turn < turns; turn++) {
      const message = turn % 2 === 0 ? `What is the secret of ${mark}?` : "How do I add a tool?"
      const identity =
        conversationId === undefined ? { externalEndUserId: `${mark}-${person}` } : { conversationId }
      const body = { message, ...identity }
      conversationId = (await dataOf(ask(spoke, "POST", "/v1/chat", { key, body }))).conversationId
    }
  }
}

const clientOf = async (spoke: Spoke, world: World): Promise<Client> => {
  const question = `secret of ${world.mark}`
  const found = await until(
    () => retrieve(spoke, world.key, question),
    (text) => text.includes(world.mark)
  )
  const { ConversationId: conversationId } = world.ids
  return {
    key: world.key,
    conversationId,
    question,
    found,
    seen: await readAsClient(spoke, world.key, world.ids)
  }
}

const originalsOf = (dataDir: string): Record<string, string> => {
  const folder = Path.join(dataDir, "artifacts")
  const names = Fs.readdirSync(folder, { recursive: true, encoding: "utf8" }).toSorted()
  return Object.fromEntries(
    names
      .filter((name) => Fs.statSync(Path.join(folder, name)).isFile())
      .map((name) => [name, Fs.readFileSync(Path.join(folder, name), "base64")])
  )
}

/** Writes the fixture to the folder `into`. `dataDir` is for the server that fills the database. */
export const makeRelease = async (stub: ModelStub, dataDir: string, into: string): Promise<void> => {
  const url = await freshDatabase()
  const withServer = async <A>(use: (spoke: Spoke) => Promise<A>): Promise<A> => {
    const spoke = await start(dataDir, {
      DATABASE_URL: url,
      SPOKE_SECRET: secret,
      SPOKE_OPERATOR_TOKEN: operatorToken,
      OPENAI_BASE_URL: stub.url,
      OPENAI_API_KEY: "sk-stub",
      SPOKE_CHAT_MODEL: "gpt-4.1-mini",
      SPOKE_EMBEDDING_MODEL: "offline",
      SPOKE_VECTOR: "in-process"
    })
    try {
      return await use(spoke)
    } finally {
      await spoke.stop()
    }
  }
  const worlds: Array<World> = []
  await withServer(async (spoke) => {
    for (const mark of marks) {
      const world = await makeWorld(spoke, await makeTenant(spoke, mark), mark)
      await uploadGuides(spoke, world)
      await haveConversations(spoke, world)
      worlds.push(world)
    }
  })
  const client = new Pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(awkwardRows)
  } finally {
    await client.end()
  }
  const options = ["--no-owner", "--no-privileges", "--rows-per-insert=20", "--dbname", url]
  const dump = execFileSync(Path.join(binaries ?? "", "pg_dump"), options, { maxBuffer: 64 * 1_048_576 })
  // What clients see of exactly these rows.
  const clients = await withServer(async (spoke) => {
    const all: Array<Client> = []
    for (const world of worlds) all.push(await clientOf(spoke, world))
    return all
  })
  const release: Release = { secret, operatorToken, clients, originals: originalsOf(dataDir) }
  Fs.mkdirSync(into, { recursive: true })
  Fs.writeFileSync(Path.join(into, "database.sql.gz"), gzipSync(dump, { level: 9 }))
  Fs.writeFileSync(Path.join(into, "world.json"), `${JSON.stringify(release, null, 2)}\n`)
}
