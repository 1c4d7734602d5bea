/** Wire formats of model providers, for each interface: replies in frames and complete, and embeddings. */

export interface StubCall {
  readonly name: string
  /** What the model "wrote", valid JSON or not. */
  readonly arguments: string
}

export interface StubReply {
  readonly text?: string
  readonly calls?: ReadonlyArray<StubCall>
  /** Null leaves the usage out. */
  readonly usage?: { readonly input: number; readonly output: number } | null
  readonly finish?: "stop" | "length" | "content_filter"
  /** Milliseconds between two tokens. */
  readonly gap?: number
  /**
   * What goes wrong in the middle of the reply: a reset, a clean end without a finish, silence, an error event, a frame
   * that is not JSON, or a frame of another shape.
   */
  readonly breaks?: "reset" | "cut" | "hang" | "error" | "garbage" | "shape"
  /** The end of the reply waits for this. */
  readonly pause?: Promise<void>
}

export const tokensOf = (text: string): ReadonlyArray<string> => text.match(/\s*\S+\s*$|\s*\S+/g) ?? []

const usageOf = ({ usage, text = "" }: StubReply) =>
  usage === null ? null : (usage ?? { input: 7, output: tokensOf(text).length })

/** The frames of one reply, for both interfaces; `middle` frames are tokens or calls. */
export interface Frames {
  readonly begin: ReadonlyArray<string>
  readonly middle: ReadonlyArray<string>
  readonly end: ReadonlyArray<string>
  readonly error: string
}

const dataFrame = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`

const halves = (text: string): ReadonlyArray<string> => {
  const half = Math.ceil(text.length / 2)
  return [text.slice(0, half), text.slice(half)].filter((part) => part !== "")
}

const chatUsage = (reply: StubReply) => {
  const usage = usageOf(reply)
  return usage === null
    ? null
    : {
        prompt_tokens: usage.input,
        completion_tokens: usage.output,
        total_tokens: usage.input + usage.output
      }
}

const chatFinish = ({ calls = [], finish = "stop" }: StubReply) => (calls.length > 0 ? "tool_calls" : finish)

const chatCalls = ({ calls = [] }: StubReply) =>
  calls.map((call, index) => ({ index, id: `call_stub_${index}`, type: "function", function: call }))

const chatFrames = (reply: StubReply): Frames => {
  const frame = (delta: unknown, finish: string | null = null) =>
    dataFrame({
      id: "chatcmpl-stub",
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
      usage: null
    })
  const usage = chatUsage(reply)
  const calls = chatCalls(reply).flatMap((call) => [
    frame({ tool_calls: [{ ...call, function: { name: call.function.name, arguments: "" } }] }),
    ...halves(call.function.arguments).map((part) =>
      frame({ tool_calls: [{ index: call.index, function: { arguments: part } }] })
    )
  ])
  return {
    begin: [frame({ role: "assistant", content: "" })],
    middle: [...tokensOf(reply.text ?? "").map((content) => frame({ content })), ...calls],
    end: [
      frame({}, chatFinish(reply)),
      ...(usage === null ? [] : [dataFrame({ id: "chatcmpl-stub", choices: [], usage })]),
      "data: [DONE]\n\n"
    ],
    error: dataFrame({ error: { message: "injected", type: "server_error", code: "server_error" } })
  }
}

const chatWhole = (reply: StubReply) => ({
  id: "chatcmpl-stub",
  object: "chat.completion",
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: reply.text ?? null, tool_calls: chatCalls(reply) },
      finish_reason: chatFinish(reply)
    }
  ],
  usage: chatUsage(reply)
})

const incompleteReason = { length: "max_output_tokens", content_filter: "content_filter" } as const

const responsesItems = ({ text = "", calls = [] }: StubReply) => [
  ...(text === ""
    ? []
    : [
        {
          id: "msg_stub",
          type: "message",
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text, annotations: [] }]
        }
      ]),
  ...calls.map((call, index) => ({
    id: `fc_stub_${index}`,
    type: "function_call",
    status: "completed",
    call_id: `call_stub_${index}`,
    ...call
  }))
]

const responsesWhole = (reply: StubReply) => {
  const usage = usageOf(reply)
  const finish = reply.finish ?? "stop"
  return {
    id: "resp_stub",
    object: "response",
    status: finish === "stop" ? "completed" : "incomplete",
    incomplete_details: finish === "stop" ? null : { reason: incompleteReason[finish] },
    output: responsesItems(reply),
    usage:
      usage === null
        ? null
        : {
            input_tokens: usage.input,
            output_tokens: usage.output,
            total_tokens: usage.input + usage.output
          }
  }
}

const responsesFrames = (reply: StubReply): Frames => {
  let sequence = 0
  const frame = (type: string, fields: object) =>
    `event: ${type}\n${dataFrame({ type, sequence_number: sequence++, ...fields })}`
  const started = { id: "resp_stub", object: "response", status: "in_progress", output: [] }
  const begin = [
    frame("response.created", { response: started }),
    frame("response.in_progress", { response: started })
  ]
  const middle = [
    ...tokensOf(reply.text ?? "").map((delta) =>
      frame("response.output_text.delta", { item_id: "msg_stub", output_index: 0, content_index: 0, delta })
    ),
    ...responsesItems(reply).flatMap((item, output_index) => [
      ...("arguments" in item
        ? [
            frame("response.output_item.added", { output_index, item: { ...item, arguments: "" } }),
            ...halves(item.arguments).map((delta) =>
              frame("response.function_call_arguments.delta", { item_id: item.id, output_index, delta })
            )
          ]
        : []),
      frame("response.output_item.done", { output_index, item })
    ])
  ]
  const finish = (reply.finish ?? "stop") === "stop" ? "response.completed" : "response.incomplete"
  return {
    begin,
    middle,
    end: [frame(finish, { response: responsesWhole(reply) })],
    error: frame("error", { code: "server_error", message: "injected", param: null })
  }
}

const anthropicStop = { stop: "end_turn", length: "max_tokens", content_filter: "refusal" } as const

const anthropicFrames = (reply: StubReply): Frames => {
  const frame = (type: string, fields: object) => `event: ${type}\n${dataFrame({ type, ...fields })}`
  const { calls = [], finish = "stop", text = "" } = reply
  const usage = usageOf(reply)
  const block = (index: number, content_block: object, deltas: ReadonlyArray<object>) => [
    frame("content_block_start", { index, content_block }),
    ...deltas.map((delta) => frame("content_block_delta", { index, delta })),
    frame("content_block_stop", { index })
  ]
  const thinking = block(0, { type: "thinking", thinking: "", signature: "" }, [
    { type: "thinking_delta", thinking: "Let me see." },
    { type: "signature_delta", signature: "c2ln" }
  ])
  const texts = tokensOf(text).map((delta) =>
    frame("content_block_delta", { index: 1, delta: { type: "text_delta", text: delta } })
  )
  const uses = calls.flatMap((call, place) =>
    block(
      place + 2,
      { type: "tool_use", id: `call_stub_${place}`, name: call.name, input: {} },
      halves(call.arguments).map((partial_json) => ({ type: "input_json_delta", partial_json }))
    )
  )
  const input = usage === null ? {} : { usage: { input_tokens: usage.input, output_tokens: 1 } }
  const output = usage === null ? {} : { usage: { output_tokens: usage.output } }
  return {
    begin: [
      frame("message_start", {
        message: { id: "msg_stub", type: "message", role: "assistant", content: [], ...input }
      }),
      ...thinking,
      frame("ping", {}),
      ...(text === ""
        ? []
        : [frame("content_block_start", { index: 1, content_block: { type: "text", text: "" } })])
    ],
    middle: [...texts, ...uses],
    end: [
      frame("message_delta", {
        delta: { stop_reason: calls.length > 0 ? "tool_use" : anthropicStop[finish], stop_sequence: null },
        ...output
      }),
      frame("message_stop", {})
    ],
    error: frame("error", { error: { type: "overloaded_error", message: "injected" } })
  }
}

export const interfaces = {
  "/messages": { frames: anthropicFrames, whole: () => ({}) },
  "/chat/completions": { frames: chatFrames, whole: chatWhole },
  "/responses": { frames: responsesFrames, whole: responsesWhole }
} as const

const fnv = (text: string): number => {
  let hash = 0x811c9dc5
  for (let place = 0; place < text.length; place++) {
    hash = Math.imul(hash ^ text.charCodeAt(place), 0x01000193)
  }
  return hash >>> 0
}

/** A bag of words, hashed: equal texts are equal, shared words are near. Not of unit length, as providers' need not be. */
const embedding = (text: string, length: number): Array<number> => {
  const vector = Array.from({ length }, () => 0)
  for (const word of text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [text]) {
    const place = fnv(word) % length
    vector[place] = (vector[place] ?? 0) + 2
  }
  return vector
}

export const embeddings = (
  body: { input: string | Array<string>; dimensions?: number; encoding_format?: string },
  fallback: number
) => {
  const inputs = typeof body.input === "string" ? [body.input] : body.input
  const vectors = inputs.map((text) => embedding(text, body.dimensions ?? fallback))
  const encoded = (vector: Array<number>) =>
    body.encoding_format === "base64"
      ? Buffer.from(Float32Array.from(vector).buffer).toString("base64")
      : vector
  return {
    object: "list",
    // Providers name the place of each vector, and need not send them in order.
    data: vectors
      .map((vector, index) => ({ object: "embedding", index, embedding: encoded(vector) }))
      .toReversed(),
    model: "stub-embedding",
    usage: { prompt_tokens: inputs.length, total_tokens: inputs.length }
  }
}
