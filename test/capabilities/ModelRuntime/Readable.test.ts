import { describe, expect, it } from "vitest"
import { readableBy } from "../../../src/capabilities/ModelRuntime/Attachments.ts"
import { AttachmentType } from "../../../src/domain/channels/Attachment.ts"

describe("The files that a model may be sent", () => {
  it("are none for models that are known to read text alone", () => {
    for (const model of ["gpt-3.5-turbo", "gpt-4", "gpt-4-0613", "o1-mini", "o3-mini"]) {
      expect(readableBy(model)).toEqual([])
    }
  })

  it("are all for every other model: only its answer tells", () => {
    for (const model of ["gpt-4.1-mini", "gpt-4o", "gpt-4-turbo", "gpt-5", "o3", "llava", "anything"]) {
      expect(readableBy(model)).toEqual(AttachmentType.literals)
    }
  })
})
