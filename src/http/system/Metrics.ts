/** `/metrics`: the metrics of the process, without envelope. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import { contentTypes, exposition, formatFor } from "./MetricsFormat.ts"

const memory = Metric.gauge("process_resident_memory_bytes", {
  description: "Resident memory of the process"
})
const cpu = Metric.counter("process_cpu_seconds_total", {
  description: "User and system time of the process",
  incremental: true
})
/** The part that is already counted. */
let countedCpuSeconds = 0

const measureProcess = Effect.sync(() => {
  const { system, user } = process.cpuUsage()
  return { memory: process.memoryUsage.rss(), cpu: (system + user) / 1e6 }
}).pipe(
  Effect.tap((now) => Metric.set(memory, now.memory)),
  Effect.tap((now) =>
    Effect.sync(() => {
      cpu.unsafeUpdate(Math.max(0, now.cpu - countedCpuSeconds), [])
      countedCpuSeconds = now.cpu
    })
  )
)

/** Adds the route. */
export const layer: Layer.Layer<never> = HttpApiBuilder.Router.use((router) =>
  router.get(
    "/metrics",
    Effect.zipRight(measureProcess, Metric.snapshot).pipe(
      Effect.zipWith(HttpServerRequest.HttpServerRequest, (pairs, { headers }) => {
        const format = formatFor(headers["accept"])
        return HttpServerResponse.text(exposition(pairs, format), { contentType: contentTypes[format] })
      })
    )
  )
)
