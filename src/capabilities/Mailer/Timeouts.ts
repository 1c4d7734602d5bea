/** Time-outs for mail servers, in milliseconds. */
export const timeoutsMs = { connection: 5_000, greeting: 5_000, socket: 10_000, dns: 5_000 }
