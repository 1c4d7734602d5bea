/** Version of the program, as a metric for `/metrics`. */
import * as Metric from "effect/Metric"
import { version } from "../Package.ts"

const build = Metric.gauge("spoke_build_info", { description: "Always 1: the versions are the labels" }).pipe(
  Metric.tagged("version", version),
  Metric.tagged("node", process.versions.node)
)

/** Sets the metric once. */
export const recordBuildInfo = Metric.set(build, 1)
