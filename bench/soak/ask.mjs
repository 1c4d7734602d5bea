/** Requests of a soak. */
import * as http from "node:http"
import { until } from "../machine.mjs"

/** One request, with the key or, with `cookie`, as the owner. `leaveAfter`: bytes before the client disconnects. */
export const ask = (
  { agent, spoke },
  method,
  path,
  { body, cookie, expected = [200, 201], headers = {}, leaveAfter, raw } = {}
) =>
  new Promise((resolve, reject) => {
    const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const request = http.request(
      `${spoke.url}${path}`,
      {
        method,
        agent,
        timeout: 70_000,
        headers: {
          ...(cookie === undefined ? { "x-api-key": spoke.key } : { cookie, "x-spoke-csrf": "1" }),
          ...(payload !== undefined && {
            "content-type": "application/json",
            "content-length": Buffer.byteLength(payload)
          }),
          ...headers
        }
      },
      (response) => {
        let text = ""
        response.setEncoding("utf8")
        response.on("data", (chunk) => {
          text += chunk
          if (leaveAfter !== undefined && text.length >= leaveAfter) {
            response.removeAllListeners("error").on("error", () => {})
            request.destroy()
            resolve(text)
          }
        })
        response.on("error", reject)
        response.on("end", () => {
          if (expected.includes(response.statusCode)) resolve(text)
          else
            reject(new Error(`${method} ${path.split("?")[0]} ${response.statusCode}: ${text.slice(0, 200)}`))
        })
      }
    )
    request.on("timeout", () => request.destroy(new Error(`${method} ${path} hung`)))
    request.on("error", reject)
    request.end(payload)
  })

export const dataOf = (text) => JSON.parse(text).data

/** Waits until a new source has been read, and deletes it. */
export const readAndRemove = async (world, { id }) => {
  const status = await until(
    "The source",
    300_000,
    async () => {
      const { status: now } = dataOf(await ask(world, "GET", `/v1/sources/${id}`))
      return now === "READY" || now === "FAILED" ? now : undefined
    },
    500
  )
  if (status === "FAILED") throw new Error("A source could not be read")
  await ask(world, "DELETE", `/v1/sources/${id}`, { expected: [200, 202, 204] })
}
