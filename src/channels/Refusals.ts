/** Refusals that several channels share. */
import { channelRefusal } from "../capabilities/ChannelAdapters.ts"
import { Unauthorized } from "../domain/Errors.ts"

/** The same error for an unknown account and for a wrong signature. */
export const invalidSignature = () =>
  new Unauthorized({ message: "The signature of the body is missing or wrong." })

export const noContactAddress = () => channelRefusal("The contact has no address on this channel.")
