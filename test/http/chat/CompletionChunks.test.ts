/** The stream of `/v1/chat/completions`, as its clients read it. */
import { expect, it } from "vitest"
import type { TurnPart } from "../../../src/domain/chat/ChatTurn.ts"
import { ChunkWriter } from "../../../src/http/public/chat/Completion.ts"
import { result, textDelta, reasoningDelta } from "./UiStream.ts"

const deltasOf = (frames: string) =>
  frames
    .split("\n\n")
    .filter((frame) => frame.startsWith("data: {"))
    .map((frame) => JSON.parse(frame.slice("data: ".length)).choices[0]?.delta)

it("A stream of completions has the model's reasoning next to the content, in the original order", () => {
  const chunks = new ChunkWriter({ id: "chatcmpl-1", created: 0, model: "agt_1" }, null, false)
  const parts: ReadonlyArray<TurnPart> = [
    reasoningDelta("Hm, "),
    reasoningDelta("so."),
    textDelta("Hello "),
    textDelta("there"),
    reasoningDelta("And?"),
    { _tag: "Done", result }
  ]
  expect(deltasOf(chunks.frames(parts))).toEqual([
    { reasoning_content: "Hm, so." },
    { content: "Hello there" },
    { reasoning_content: "And?" },
    {}
  ])
})
