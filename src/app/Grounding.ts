/** The configured grounding checker. */
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Http from "../capabilities/GroundingChecker/Http.ts"
import * as Model from "../capabilities/GroundingChecker/Model.ts"
import * as Words from "../capabilities/GroundingChecker/Words.ts"
import { parseAllowList } from "../capabilities/OutboundHttp/AddressRules.ts"
import * as Undici from "../capabilities/OutboundHttp/Undici.ts"
import type { Settings } from "./config/Settings.ts"

/** The operator has configured this address, so it may be a private one. */
export const allowConfiguredHost = (url: string) => {
  const { host } = new URL(url)
  return Undici.layerUndici({ allow: Either.getOrElse(parseAllowList(host), () => []) })
}

export const groundingChecker = ({ grounding }: Settings) => {
  if (grounding.checker === "http")
    return Http.layerHttp(grounding).pipe(Layer.provide(allowConfiguredHost(grounding.url)))
  return grounding.checker === "model" ? Model.layerModel() : Words.layerWords
}
