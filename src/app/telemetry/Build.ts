/** Which program this is: told at `/metrics`. */
import * as Metric from "effect/Metric"
import { version } from "../Package.ts"

const build = Metric.gauge("spoke_build_info", { description: "Always 1: the versions are the labels" }).pipe(
  Metric.tagged("version", version),
  Metric.tagged("node", process.versions.node)
)

/** Says it once and for all. */
export const tell = Metric.set(build, 1)
