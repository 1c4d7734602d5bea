/**
 * What a program does with the library, in whichever runtime this is run: the packed library is beside it. Prints one line
 * when all of it went as it should; nothing of Spoke may then keep the process alive.
 */
import assert from "node:assert"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"

/** `spoke` is the module, however it was loaded. */
export const trial = async ({ createSpoke, SpokeError }) => {
  const dataDir = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-trial-"))
  const log = []
  const spoke = await createSpoke({
    dataDir,
    admin: { email: "owner@example.com", password: "correct horse battery" },
    log: ({ level, message, cause }) => log.push(`${level} ${message} ${cause ?? ""}`)
  })
  const agent = spoke.agent((await spoke.agents.create({ name: "Tea guide" })).id)

  // A document is read and embedded on threads, found by meaning, and cited.
  const { source } = await agent.sources.upload({
    file: "# Tea\n\nGreen tea is brewed at eighty degrees.",
    fileName: "tea.md"
  })
  await agent.sources.ready(source.id)
  for (let state = { embedded: 0 }; state.embedded === 0;) {
    state = await agent.sources.embedding(source.id)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const { chunks } = await agent.retrieve({ query: "At which temperature do I brew it?", topK: 1 })
  assert.equal(chunks.length, 1)
  const { citations, reply } = await agent.chat({ message: "How is green tea brewed?" })
  assert.match(reply, /eighty degrees/)
  assert.equal(citations[0].sourceId, source.id)

  // Errors are the library's own, whatever realm their causes come from.
  const refused = async (promise, code) => {
    const error = await promise.then(
      () => undefined,
      (thrown) => thrown
    )
    assert.ok(error instanceof SpokeError, String(error))
    assert.equal(error.code, code)
  }
  await refused(agent.sources.get("src_none"), "NOT_FOUND")
  await refused(createSpoke({ dataDir }), "DATA_DIRECTORY_IN_USE")
  await refused(
    createSpoke({ dataDir: Path.join(dataDir, "credentials-that-are-a-file/\0") }),
    "INVALID_CONFIG"
  ).catch(() => undefined)
  Fs.writeFileSync(Path.join(dataDir, "file"), "")
  await refused(createSpoke({ dataDir: Path.join(dataDir, "file") }), "DATA_DIRECTORY_UNUSABLE")

  // A source that cannot be had says why, which takes the system's errors.
  const { source: away } = await agent.sources.create({
    type: "URL",
    name: "Away",
    config: { url: "http://no-such-host.invalid/" }
  })
  await refused(agent.sources.ready(away.id), "SOURCE_FAILED")
  assert.match((await agent.sources.get(away.id)).error, /does not exist|could not be looked up/)

  // Over the handler, with a session and a key.
  const signIn = await spoke.fetch(
    new Request("http://spoke.test/api/auth/login", {
      method: "POST",
      headers: { "content-type": "application/json", origin: "http://127.0.0.1:3000" },
      body: JSON.stringify({ email: "owner@example.com", password: "correct horse battery" })
    })
  )
  assert.equal(signIn.status, 200)
  const { secret } = await agent.keys.create({ name: "Network", permissions: ["*"] })
  const begin = (signal) =>
    spoke.fetch(
      new Request("http://spoke.test/v1/chat/stream", {
        method: "POST",
        headers: { "content-type": "application/json", "x-api-key": secret },
        body: JSON.stringify({ message: "How is green tea brewed?" }),
        ...(signal === undefined ? {} : { signal })
      })
    )

  // A stream that is aborted, one that is left, one that is dropped, and one that is never read.
  const caller = new AbortController()
  const aborted = await begin(caller.signal)
  caller.abort(new Error("gone"))
  await assert.rejects(aborted.text(), /gone/)
  for await (const part of agent.stream({ message: "How is green tea brewed?" })) {
    if (part.type === "data-agent-run-event") break
  }
  await agent.stream({ message: "How is green tea brewed?" })[Symbol.asyncIterator]().next()
  agent.stream({ message: "Never begun" })
  const unread = await begin()

  await Promise.all([spoke.close(), spoke.close()])
  await refused(agent.usage(), "CLOSED")
  assert.match(await unread.text(), /\[DONE\]/)
  assert.deepEqual(
    log.filter((line) => /^(?:error|fatal)/.test(line) && !line.includes("no-such-host")),
    []
  )
  Fs.rmSync(dataDir, { recursive: true, force: true })
  return "all is well"
}
