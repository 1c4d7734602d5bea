/** Units of systemd and the database of compose.yaml: what can be known of them where neither runs. */
import { execFileSync, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { afterAll, describe, expect, inject, it } from "vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Pg from "pg"
import { Variables } from "../../src/app/config/Config.ts"
import { fileVariables } from "../../src/app/config/SecretFiles.ts"
import { isolateTenants, layerPostgres, migrate } from "../../src/store/Database.ts"
import { binaries, startServer } from "../servers/PostgresServer.ts"
import { migrations } from "../TestDatabase.ts"
import { has, longestDrainSeconds, read, root } from "./Tools.ts"

const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-deploy-"))
const known: ReadonlySet<string> = new Set([...Object.keys(Variables.fields), ...fileVariables])
/** Variables that are read by others than Spoke. */
const others = new Set(["NODE_ENV", "NODE_OPTIONS", "ROLE"])

afterAll(() => Fs.rmSync(folder, { recursive: true, force: true }))

describe("The units of systemd", () => {
  const names = Fs.readdirSync(Path.join(root, "deploy/systemd")).toSorted()
  const linesOf = (name: string) => read("deploy/systemd", name).split("\n")
  const valuesOf = (name: string, key: string) =>
    linesOf(name).flatMap((line) => (line.startsWith(`${key}=`) ? [line.slice(key.length + 1)] : []))

  it("are a server and a worker, which may do the same little", () => {
    expect(names).toEqual(["spoke-worker@.service", "spoke.service"])
    const [worker, server] = names.map((name) => {
      const lines = linesOf(name)
      return lines.slice(lines.findIndex((line) => line.startsWith("# No MemoryDenyWriteExecute")))
    })
    expect(worker).toEqual(server)
    expect(server).toEqual(
      expect.arrayContaining(["NoNewPrivileges=yes", "ProtectSystem=strict", "DynamicUser=yes"])
    )
  })

  it("name variables of Spoke alone, and every credential that they hand over is loaded", () => {
    for (const name of names) {
      const given = valuesOf(name, "Environment").flatMap((line) => line.split(" "))
      const variables = given.map((one) => one.split("=", 1)[0] ?? "")
      expect(variables.filter((one) => !known.has(one) && !others.has(one))).toEqual([])
      const used = given.flatMap((one) => /%d\/(\w+)$/u.exec(one)?.[1] ?? [])
      const loaded = valuesOf(name, "LoadCredential").map((line) => line.split(":", 1)[0])
      expect(loaded.toSorted()).toEqual(used.toSorted())
    }
  })

  it("give Node.js the same options as the image, the Nix package and the benchmarks", () => {
    const [option = ""] = /--max-semi-space-size=\d+/u.exec(read("Dockerfile")) ?? []
    expect(option).not.toBe("")
    for (const name of names) expect(valuesOf(name, "Environment")).toContain(`NODE_OPTIONS=${option}`)
    expect(read("nix/package.nix")).toContain(`--set-default NODE_OPTIONS ${option}`)
    expect(read("bench/machine.mjs")).toContain(`const nodeOptions = "${option}"`)
  })

  it("stop for longer than a drain takes, as the Nix module's", () => {
    const [, nix] = /TimeoutStopSec = (\d+);/u.exec(read("nix/module.nix")) ?? []
    for (const seconds of [...names.flatMap((name) => valuesOf(name, "TimeoutStopSec")), nix])
      expect(Number(seconds)).toBeGreaterThanOrEqual(1 + longestDrainSeconds + 5)
  })

  it.skipIf(!has("systemd-analyze", ["--version"]))("are what systemd can read, and little exposed", () => {
    for (const name of names) {
      // What it starts is not installed here.
      const text = read("deploy/systemd", name).replaceAll(
        /^ExecStart=\S+ \S+/gmu,
        `ExecStart=${process.execPath} ${root}/bin/spoke.mjs`
      )
      const file = Path.join(folder, name.replace("@", "@9464"))
      Fs.writeFileSync(file, text)
      const verified = spawnSync("systemd-analyze", ["verify", "--recursive-errors=no", "--man=no", file], {
        encoding: "utf8"
      })
      // Of units that are not ours it may complain, too.
      expect(verified.stderr.split("\n").filter((line) => line.includes("spoke"))).toEqual([])
      const judged = spawnSync("systemd-analyze", ["security", "--offline=true", "--threshold=20", file], {
        encoding: "utf8"
      })
      expect([judged.stdout, judged.stderr, judged.status]).toEqual([expect.any(String), "", 0])
    }
  })
})

describe.skipIf(binaries === undefined)("The script of the database of compose.yaml", () => {
  it("makes an ordinary role with a database of its own, which migrations are content with", async () => {
    const address = new URL(await startServer(inject("servers"), { kind: "compose" }))
    const query = async (url: string, text: string) => {
      const client = new Pg.Client({ connectionString: url })
      await client.connect()
      try {
        return (await client.query(text)).rows
      } finally {
        await client.end()
      }
    }
    const [{ there }] = await query(
      address.href,
      "select count(*)::int as there from pg_available_extensions where name = 'vector'"
    )
    const script = Path.join(folder, "init.sh")
    const text = read("deploy/postgres/init.sh")
    // Where pgvector is not installed, one that always is.
    Fs.writeFileSync(script, there === 1 ? text : text.replace("EXISTS vector", "EXISTS plpgsql"))
    const password = Path.join(folder, "database_password")
    Fs.writeFileSync(password, "it's \\ a $secret\n")
    execFileSync("sh", [script], {
      stdio: "pipe",
      env: {
        PATH: `${binaries}:${process.env["PATH"]}`,
        PGHOST: address.hostname,
        PGPORT: address.port,
        POSTGRES_USER: decodeURIComponent(address.username),
        SPOKE_DATABASE_PASSWORD_FILE: password
      }
    })
    const [role] = await query(
      address.href,
      "select rolsuper, rolcreatedb, rolcreaterole, rolpassword like 'SCRAM%' as hashed from pg_authid where rolname = 'spoke'"
    )
    expect(role).toEqual({ rolsuper: false, rolcreatedb: false, rolcreaterole: false, hashed: true })
    address.username = "spoke"
    address.pathname = "/spoke"
    await Effect.runPromise(
      Effect.zipRight(migrate(migrations), isolateTenants("spoke_tenant")).pipe(
        Effect.provide(
          layerPostgres({ url: Redacted.make(address.href), maxConnections: 2, tenantRole: "spoke_tenant" })
        )
      )
    )
    const [{ owner }] = await query(
      address.href,
      "select tableowner as owner from pg_tables where tablename = 'agents'"
    )
    expect(owner).toBe("spoke")
  }, 120_000)
})
