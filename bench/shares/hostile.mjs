/**
 * One hostile caller, in its own thread. From one address and with one tenant's key it uses as much of one limit as it
 * can, and retries when it is refused. `workerData` is `{attack, world}`. It posts `placed`, and at the end `ended`
 * with its counts.
 */
import * as http from "node:http"
import { connect } from "node:net"
import { parentPort, workerData } from "node:worker_threads"
import { makeAttacks } from "./attacks.mjs"
import { pause } from "./world.mjs"

const { attack, world } = workerData
const address = "127.0.0.2"
const port = Number(new URL(world.url).port)

let isOver = false
parentPort.once("message", () => (isOver = true))
const outcome = { opened: 0, closed: 0, statuses: {} }
const sockets = new Set()

/** A connection that `begin` writes to; returns when it has ended. */
const connection = (begin) =>
  new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", localAddress: address })
    sockets.add(socket)
    let received = ""
    socket.on("connect", () => {
      outcome.opened++
      begin(socket)
    })
    socket.on("error", () => {})
    socket.setEncoding("latin1").on("data", (text) => {
      if (received.length < 100) received += text
    })
    socket.on("close", () => {
      outcome.closed++
      sockets.delete(socket)
      const status = /^HTTP\/1\.1 (\d+)/.exec(received)?.[1] ?? "closed"
      outcome.statuses[status] = (outcome.statuses[status] ?? 0) + 1
      resolve()
    })
  })

/** Keeps `count` connections open; each is reopened `gap` milliseconds after it was closed. */
const hold = (count, gap, begin) =>
  Promise.all(
    Array.from({ length: count }, async () => {
      while (!isOver) {
        await connection(begin)
        await pause(gap)
      }
    })
  )

const agent = new http.Agent({ keepAlive: true, maxSockets: 1_000 })
const request = (path, { body, headers = {}, method = "POST" }) =>
  new Promise((resolve) => {
    const sent = http.request(
      { port, host: "127.0.0.1", localAddress: address, path, method, agent, headers },
      (response) => {
        outcome.statuses[response.statusCode] = (outcome.statuses[response.statusCode] ?? 0) + 1
        response.resume().on("end", resolve).on("error", resolve)
      }
    )
    sent.on("error", () => resolve())
    sent.end(body)
  })
/** Keeps `count` requests running. */
const crowd = (count, next) =>
  Promise.all(
    Array.from({ length: count }, async () => {
      while (!isOver) {
        const { gap, path, ...options } = next()
        await request(path, options)
        await pause(gap ?? 50)
      }
    })
  )

const work = makeAttacks({ crowd, hold, world })[attack]()
setTimeout(() => parentPort.postMessage({ placed: true }), 2_000)
while (!isOver) await pause(50)
const destroyTimer = setInterval(() => {
  for (const socket of sockets) socket.destroy()
}, 100)
await Promise.race([work, pause(5_000)])
clearInterval(destroyTimer)
agent.destroy()
parentPort.postMessage({ ended: outcome })
process.exit(0)
