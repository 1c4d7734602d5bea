/** How the model provider is reached. */
import * as Layer from "effect/Layer"
import * as StreamingPostUndici from "../capabilities/StreamingPost/Undici.ts"
import * as ProviderHttp from "../capabilities/ModelRuntime/ProviderHttp.ts"

export const exchange = StreamingPostUndici.layer.pipe(Layer.provide(ProviderHttp.layerDispatcher))
