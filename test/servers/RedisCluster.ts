/** A private cluster of three Redis servers for tests: loopback, free ports, nothing kept. */
import { Redis } from "ioredis"
import { type ChildProcess, spawn } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { inject } from "vitest"
import { binary } from "./RedisServer.ts"
import { freePort } from "./FreePort.ts"

const masters = 3
const slots = 16_384

/** The bus of a node listens this far above its port. */
const busDistance = 10_000

/** Asks until it is so, for half a minute. */
const settled = async (ask: () => Promise<boolean>, attempts = 300): Promise<void> => {
  if (await ask().catch(() => false)) return
  if (attempts === 0) throw new Error("The Redis cluster did not form.")
  await delay(100)
  return settled(ask, attempts - 1)
}

/** Starts the cluster; `url` names all its nodes. It ends with this process at the latest. */
export const startCluster = async () => {
  if (binary === undefined) throw new Error("No redis-server was found.")
  const file = binary
  const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-cluster-"))
  const servers: Array<ChildProcess> = []
  const marks: Array<string> = []
  const end = () => {
    for (const server of servers) server.kill("SIGKILL")
    Fs.rmSync(folder, { recursive: true, force: true })
  }
  process.once("exit", end)
  const ports: Array<number> = []
  const clients: Array<Redis> = []
  for (let node = 0; node < masters; node++) {
    const port = await freePort(busDistance)
    const settings = {
      port,
      bind: "127.0.0.1",
      dir: folder,
      save: "",
      appendonly: "no",
      "cluster-enabled": "yes",
      "cluster-config-file": `node-${node}.conf`,
      "cluster-node-timeout": "5000"
    }
    const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
    const server = spawn(file, args, { stdio: "ignore" })
    // The end of the run finds it by this, should this process be killed.
    const mark = Path.join(inject("servers"), `${server.pid}.redis.pid`)
    Fs.writeFileSync(mark, String(server.pid))
    marks.push(mark)
    server.unref()
    servers.push(server)
    ports.push(port)
    const client = new Redis({ port, host: "127.0.0.1", enableReadyCheck: false })
    client.on("error", () => {})
    clients.push(client)
  }
  for (const [node, client] of clients.entries()) {
    await settled(async () => (await client.ping()) === "PONG")
    const first = Math.ceil((node * slots) / masters)
    const last = Math.ceil(((node + 1) * slots) / masters) - 1
    await client.call("CLUSTER", "ADDSLOTSRANGE", first, last)
    // Else two of them may claim the same epoch, and argue.
    await client.call("CLUSTER", "SET-CONFIG-EPOCH", node + 1)
  }
  for (const port of ports) await clients[0]?.call("CLUSTER", "MEET", "127.0.0.1", port)
  for (const client of clients) {
    await settled(async () => {
      const info = String(await client.call("CLUSTER", "INFO"))
      return info.includes("cluster_state:ok") && info.includes(`cluster_known_nodes:${masters}`)
    })
  }
  for (const client of clients) client.disconnect()
  return {
    url: `redis://${ports.map((port) => `127.0.0.1:${port}`).join(",")}`,
    /** One node alone, which tells of the others. */
    seed: `redis://127.0.0.1:${ports[0]}?cluster=true`,
    stop: async () => {
      process.off("exit", end)
      for (const mark of marks) Fs.rmSync(mark, { force: true })
      const ended = servers.map((server) => new Promise((resolve) => server.once("exit", resolve)))
      end()
      await Promise.all(ended)
    }
  }
}
