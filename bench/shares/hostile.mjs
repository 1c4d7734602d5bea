/**
 * One hostile caller, in a thread of its own: from one address, with the key of one tenant, it takes as much as it can get of
 * one limit, and comes back when it is refused. Told who it is by `workerData`: `{attack, world}`; says `placed`, and ends.
 */
import * as http from "node:http"
import { connect } from "node:net"
import { parentPort, workerData } from "node:worker_threads"
import { makeAttacks } from "./attacks.mjs"
import { pause } from "./world.mjs"

const { attack, world } = workerData
const address = "127.0.0.2"
const port = Number(new URL(world.url).port)

let over = false
parentPort.once("message", () => (over = true))
const told = { opened: 0, closed: 0, statuses: {} }
const sockets = new Set()

/** A connection that `begin` writes to; returns when it has ended. */
const connection = (begin) =>
  new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", localAddress: address })
    sockets.add(socket)
    let heard = ""
    socket.on("connect", () => {
      told.opened++
      begin(socket)
    })
    socket.on("error", () => {})
    socket.setEncoding("latin1").on("data", (text) => {
      if (heard.length < 100) heard += text
    })
    socket.on("close", () => {
      told.closed++
      sockets.delete(socket)
      const status = /^HTTP\/1\.1 (\d+)/.exec(heard)?.[1] ?? "closed"
      told.statuses[status] = (told.statuses[status] ?? 0) + 1
      resolve()
    })
  })

/** Keeps `count` connections open; each is reopened `gap` milliseconds after it was closed. */
const hold = (count, gap, begin) =>
  Promise.all(
    Array.from({ length: count }, async () => {
      while (!over) {
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
        told.statuses[response.statusCode] = (told.statuses[response.statusCode] ?? 0) + 1
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
      while (!over) {
        const { gap, path, ...options } = next()
        await request(path, options)
        await pause(gap ?? 50)
      }
    })
  )

const work = makeAttacks({ crowd, hold, world })[attack]()
setTimeout(() => parentPort.postMessage({ placed: true }), 2_000)
while (!over) await pause(50)
const end = setInterval(() => {
  for (const socket of sockets) socket.destroy()
}, 100)
await Promise.race([work, pause(5_000)])
clearInterval(end)
agent.destroy()
parentPort.postMessage({ ended: told })
process.exit(0)
