/** The whole company, with the embedding model that comes with the service. */
import { layerUniversalSentenceEncoder } from "../../src/capabilities/Embedder/Offline.ts"
import { wholeCompany } from "./Company.ts"
import { type CompanyFigures, run } from "./Evaluate.ts"

export const measure = (script: URL, log: (line: string) => void): Promise<CompanyFigures> =>
  run(wholeCompany, layerUniversalSentenceEncoder({ script }), log)
