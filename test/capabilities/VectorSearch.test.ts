import { layerInProcess } from "../../src/capabilities/VectorSearch/InProcess.ts"
import { vectorSearchSuite } from "./VectorSearch/Suite.ts"

vectorSearchSuite("in process", layerInProcess({ maxBytes: 64 * 1024 * 1024, wordsFirstAbove: Infinity }))

// Every search but the last one's agent is forgotten at once.
vectorSearchSuite(
  "in process without memory to spare",
  layerInProcess({ maxBytes: 1, wordsFirstAbove: Infinity })
)
