/** How the model provider is reached. */
import * as Layer from "effect/Layer"
import * as ExchangeUndici from "../capabilities/StreamingPost/Undici.ts"
import * as ProviderHttp from "../capabilities/ModelRuntime/ProviderHttp.ts"

export const exchange = ExchangeUndici.layer.pipe(Layer.provide(ProviderHttp.layerDispatcher))
