/** The command `spoke` in a terminal and in a pipe: what goes where, how it ends, and what it says of a line it cannot take. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import * as Fs from "node:fs"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import * as Path from "node:path"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as ModelStub from "../../servers/ModelStub.ts"
import {
  command,
  environment,
  waitForJob,
  hasShell,
  removeFolder,
  root,
  run,
  type Spoke,
  start,
  temporaryFolder,
  until
} from "../Spoke.ts"

it.skipIf(!Fs.existsSync("/dev/full"))(
  "A result whose disk is full exits with 1 and says so",
  async () => {
    const full = Fs.openSync("/dev/full", "w")
    const child = spawn(process.execPath, [command, "--help"], { stdio: ["ignore", full, "pipe"] })
    let said = ""
    child.stderr?.on("data", (data) => (said += String(data)))
    const [code] = await once(child, "close")
    Fs.closeSync(full)
    expect([code, said]).toEqual([1, "The output could not be written: its disk is full.\n"])
  },
  60_000
)

const commands = [
  "serve",
  "migrate",
  "doctor",
  "ingest",
  "chat",
  "retrieve",
  "eval",
  "replay",
  "mcp",
  "export",
  "import"
] as const

describe("A line that cannot be taken", () => {
  it.each([
    { args: ["chta"], says: ["unknown command 'chta'", "Did you mean chat?", "spoke --help"] },
    { args: ["retrieve", "x", "--topk", "3"], says: ["unknown option '--topk'", "Did you mean --top-k?"] },
    { args: ["chat", "--foo", "hi"], says: ["unknown option '--foo'", "spoke chat --help"] },
    { args: ["retrieve", "x", "--top-k", "abc"], says: ["'--top-k <count>'", "'abc'", "from 1 to 20"] },
    { args: ["retrieve", "x", "--top-k", "99"], says: ["'--top-k <count>'", "'99'", "from 1 to 20"] },
    { args: ["retrieve", "x", "--min-score", "2"], says: ["'--min-score <score>'", "from 0 to 1"] },
    { args: ["ingest", "x", "--depth", "1.5"], says: ["'--depth <links>'", "from 0 to 5"] },
    { args: ["serve", "--role", "boss"], says: ["'--role <role>'", "all, api, worker"] },
    { args: ["chat"], says: ["missing required argument 'message'", "spoke chat --help"] },
    { args: ["ingest"], says: ["missing required argument"] },
    { args: ["chat", "one", "two"], says: ["too many arguments"] },
    { args: ["chat", "hi", "--key-file"], says: ["--key-file <file>", "argument missing"] }
  ])("$args exits with 1, names what is wrong and says where help is", async ({ args, says }) => {
    const { code, stderr, stdout } = await run(args, {})
    expect([code, stdout]).toEqual([1, ""])
    for (const words of says) expect(stderr).toContain(words)
  })
})

describe("Help", () => {
  it.each([[], ["--help"], ["-h"], ["help"]])(
    "spoke %s lists every command and exits with 0",
    async (...args) => {
      const { code, stderr, stdout } = await run(args, {})
      expect([code, stderr]).toEqual([0, ""])
      expect(stdout).toContain("Usage: spoke [options] [command]")
      for (const name of commands) expect(stdout).toMatch(new RegExp(`^ {2}${name}\\b`, "mu"))
    }
  )

  it.each(commands)("spoke %s --help shows its usage, an example of it and no colours", async (name) => {
    const { code, stderr, stdout } = await run([name, "--help"], { FORCE_COLOR: "" })
    expect([code, stderr]).toEqual([0, ""])
    expect(stdout).toContain(`Usage: spoke ${name}`)
    expect(stdout).toMatch(new RegExp(`^Examples:\\n(?:.*\\n)*?.*\\bspoke ${name}\\b`, "mu"))
    expect(stdout).not.toContain("\u001b")
  })

  it.each(["-v", "--version"])("spoke %s prints the version", async (flag) => {
    const { version }: { readonly version: string } = JSON.parse(
      Fs.readFileSync(Path.join(root, "package.json"), "utf8")
    )
    expect(await run([flag], {})).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" })
  })
})

describe("Commands at a running server", () => {
  const folder = temporaryFolder()
  const scope = Effect.runSync(Scope.make())
  const site = Http.createServer(() => {})
  let model: ModelStub.ModelStub
  let spoke: Spoke
  let variables: Readonly<Record<string, string>> = {}

  beforeAll(async () => {
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve))
    model = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    spoke = await start(folder, {
      OPENAI_API_KEY: "sk-test",
      OPENAI_BASE_URL: model.url,
      SPOKE_EMBEDDING_MODEL: "offline",
      SPOKE_FETCH_ALLOW: "127.0.0.1"
    })
    variables = { SPOKE_URL: spoke.url, SPOKE_API_KEY: spoke.apiKey, SPOKE_DATA_DIR: folder }
  })
  afterAll(async () => {
    await spoke.kill()
    site.closeAllConnections()
    site.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
    removeFolder(folder)
  })

  /** A command that is not waited for. */
  const begin = (...args: ReadonlyArray<string>) => {
    const child = spawn(process.execPath, [command, ...args], {
      cwd: root,
      env: environment(variables),
      stdio: ["ignore", "pipe", "pipe"]
    })
    const said = { stdout: "", stderr: "" }
    child.stdout.on("data", (chunk: Buffer) => (said.stdout += chunk.toString()))
    child.stderr.on("data", (chunk: Buffer) => (said.stderr += chunk.toString()))
    return { child, said }
  }
  const ended = async (child: ChildProcess) => {
    if (child.exitCode === null && child.signalCode === null) await once(child, "close")
    return child.exitCode
  }
  const shell = (line: string) =>
    run(["-c", line], { ...variables, SPOKE: `${process.execPath} ${command}` }, ["bash"])

  it("chat prints the reply alone; citations and how to go on are told beside it", async () => {
    model.script.push({ text: "A source is added so [1]." })
    const { code, stderr, stdout } = await run(["chat", "How do I add a source?"], variables)
    expect([code, stdout]).toEqual([0, "A source is added so [1].\n"])
    expect(stderr).toContain("  [1] ")
    expect(stderr).toMatch(/Continue with --conversation cnv_\S+/u)
  })

  it("chat --json prints the answer as JSON and nothing else", async () => {
    const { code, stderr, stdout } = await run(["chat", "Hello", "--json"], variables)
    expect([code, stderr, JSON.parse(stdout).reply]).toEqual([0, "", "The stub says hello."])
  })

  it("replay runs a stored turn again, and says what is said now beside what was said then", async () => {
    model.script.push({ text: "One answer." })
    const told = await run(["chat", "How is a turn replayed?", "--json"], variables)
    const { runId } = JSON.parse(told.stdout)
    model.script.push({ text: "One answer." })
    const same = await run(["replay", runId, "--json"], variables)
    expect([same.code, same.stderr]).toEqual([0, ""])
    expect(JSON.parse(same.stdout)).toMatchObject({
      runs: [{ runId, outcome: "same", before: { reply: "One answer." }, after: { reply: "One answer." } }]
    })
    model.script.push({ text: "Another answer." })
    const changed = await run(["replay", runId, "--version", "1"], variables)
    expect([changed.code, changed.stderr]).toEqual([0, ""])
    expect(changed.stdout).toContain(`${runId}  changed\n  before: One answer.\n  after: Another answer.`)
    const unknown = await run(["replay", "run_none"], variables)
    expect([unknown.code, unknown.stdout]).toEqual([1, ""])
    expect(unknown.stderr).toContain("NOT_FOUND: A run of runIds does not exist for this agent.")
  })

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143]
  ] as const)(
    "chat that %s interrupts exits with %i and says what becomes of the turn",
    async (signal, code) => {
      model.script.push({ text: "One two three four", breaks: "hang" })
      const { child, said } = begin("chat", "Hello")
      await until(
        () => Promise.resolve(said.stdout),
        (text) => text.includes("One")
      )
      child.kill(signal)
      expect(await ended(child)).toBe(code)
      expect(said.stderr).toMatch(
        /Interrupted\. The turn is answered and stored nevertheless\. Its run is run_\w+/u
      )
    }
  )

  it("ingest that Ctrl+C interrupts exits with 130 and says that the server goes on", async () => {
    const { port } = site.address() as AddressInfo
    const { child, said } = begin("ingest", `http://127.0.0.1:${port}/`, "--name", "Slow")
    await once(site, "request")
    child.kill("SIGINT")
    expect(await ended(child)).toBe(130)
    expect(said.stderr).toMatch(
      /Interrupted\. The server continues to read Slow: GET \/v1\/sources\/src_\w+/u
    )
  })

  it("ingest prints what it has added, and nothing is redrawn where no terminal is", async () => {
    const file = Path.join(folder, "tea.md")
    Fs.writeFileSync(file, "Green tea is brewed at eighty degrees.")
    const { code, stderr, stdout } = await run(["ingest", file], variables)
    expect([code, stderr, stdout]).toEqual([0, "", "tea.md: ready, 1 chunks\n"])
  })

  it("ingest refuses a file that is larger than a server takes, before it is read", async () => {
    const file = Path.join(folder, "huge.md")
    Fs.writeFileSync(file, "")
    Fs.truncateSync(file, 3 * 2 ** 30)
    const { code, stderr, stdout } = await run(["ingest", file], variables)
    expect([code, stdout, stderr]).toEqual([1, "", `${file} is longer than 52428800 bytes.\n`])
  })

  it("import refuses to take an archive to a server, as it is imported into the store of this folder", async () => {
    const { code, stderr, stdout } = await run(["import", folder, "--url", "http://127.0.0.1:9"], variables)
    expect([code, stdout]).toEqual([1, ""])
    expect(stderr).toContain("An archive is imported into the store of this folder, or of DATABASE_URL.")
  })

  it.skipIf(!hasShell)("import tells of a line that is too long, and sends the others", async () => {
    const long = "head -c 600000000 /dev/zero | tr '\\0' x"
    const { code, stderr, stdout } = await shell(`(echo '{}'; ${long}; echo; echo '[]') | $SPOKE import -`)
    expect([code, stdout]).toEqual([1, "0 conversations with 0 messages imported, 0 existed already\n"])
    expect(stderr.match(/^line \d/gmu)).toEqual(["line 1", "line 2", "line 3"])
    expect(stderr).toContain("line 2: Is longer than 16777216 bytes\n")
  })

  it.skipIf(!hasShell)(
    "what nobody reads on ends quietly: retrieve | head, and chat into a closed pipe",
    async () => {
      const found = await shell('$SPOKE retrieve "source" --top-k 20 | head -1; echo "${PIPESTATUS[0]}"')
      expect([found.stderr, found.stdout.trim().split("\n").at(-1)]).toEqual(["", "0"])
      model.script.push({ text: "word ".repeat(2_000), gap: 2 })
      const said = await shell('$SPOKE chat "Hello" | head -c 4; echo " ${PIPESTATUS[0]}"')
      expect([said.stderr, said.stdout]).toEqual(["", "word 0\n"])
    }
  )

  it("retrieve without a result prints nothing, and says so beside it", async () => {
    const { code, stderr, stdout } = await run(["retrieve", "zzzzzz", "--min-score", "0.99"], variables)
    expect([code, stdout]).toEqual([0, ""])
    expect(stderr).toContain("Nothing was found")
  })

  it.each([
    { args: ["chat", "Hi"], with: { SPOKE_API_KEY: "spk_wrong" }, says: ["UNAUTHORIZED", "--key-file"] },
    {
      args: ["chat", "Hi", "--conversation", "cnv_none"],
      with: {},
      says: ["CONVERSATION_NOT_FOUND", "Leave --conversation out"]
    },
    { args: ["chat", " "], with: {}, says: ["VALIDATION_ERROR", "message: "] },
    {
      args: ["chat", "Hi"],
      with: { SPOKE_URL: "http://127.0.0.1:9" },
      says: ["does not answer", "spoke serve"]
    },
    { args: ["ingest", "/nowhere/at-all.md"], with: {}, says: ["/nowhere/at-all.md cannot be read"] },
    { args: ["chat", "Hi", "--key-file", "/nowhere"], with: {}, says: ["/nowhere cannot be read"] },
    {
      args: ["tenant", "move"],
      with: {},
      says: ["missing required argument", "See spoke tenant move --help."]
    },
    {
      args: ["tenant", "move", "ten_1", "--confirm", "--rollback"],
      with: {},
      says: ["'--confirm' cannot be used with option '--rollback'"]
    },
    { args: ["chat", "Hi", "--url", "localhost:3000"], with: {}, says: ["--url", "http:// or https://"] },
    {
      args: ["chat", "Hi"],
      with: { SPOKE_URL: "127.0.0.1:3000" },
      says: ["SPOKE_URL", "http:// or https://"]
    },
    {
      args: ["listen", "--forward-to", "localhost:4000/spoke"],
      with: {},
      says: ["--forward-to", "http:// or https://"]
    },
    {
      args: ["import", "package.json", "--operator-token", "wrong"],
      with: {},
      says: ["UNAUTHORIZED", "--operator-token-file"]
    }
  ])(
    "$args says in words what is wrong and what to do, and exits with 1",
    async ({ args, says, with: changed }) => {
      const { code, stderr, stdout } = await run(args, { ...variables, ...changed })
      expect([code, stdout]).toEqual([1, ""])
      for (const words of says) expect(stderr).toContain(words)
      expect(stderr).not.toContain("    at ")
    }
  )

  it("a turn that fails in the middle exits with 1 and its code", async () => {
    model.script.push({ text: "One two three four", breaks: "cut" })
    const { code, stderr, stdout } = await run(["chat", "Hello"], variables)
    expect([code, stdout.startsWith("One")]).toEqual([1, true])
    expect(stderr).toContain("TURN_FAILED")
  })

  it("a server outlives who reads its log", async () => {
    const own = temporaryFolder()
    const other = await start(own, { SPOKE_EMBEDDING_MODEL: "offline" })
    other.process.stdout?.destroy()
    other.process.stderr?.destroy()
    const { body } = await other.request("POST", "/v1/sources", {
      body: { type: "URL", name: "Refused", config: { url: "http://127.0.0.1:9/" } }
    })
    // Its failure is logged.
    expect((await waitForJob(other, body.data.ingestionJob.id)).body.data.status).toBe("FAILED")
    expect((await other.request("GET", "/readyz")).status).toBe(200)
    expect(await other.stop()).toBe(0)
    removeFolder(own)
  })
})
