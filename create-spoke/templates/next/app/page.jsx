"use client"

import { useState } from "react"

export default function Page() {
  const [reply, setReply] = useState("")
  const ask = async (data) => {
    const response = await fetch("/chat", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ message: data.get("message") })
    })
    const answer = await response.json()
    setReply(answer.reply ?? answer.error)
  }
  return (
    <main>
      <form action={ask}>
        <label>
          Question <input name="message" defaultValue="How is green tea brewed?" required />
        </label>
        <button>Ask</button>
      </form>
      <p style={{ whiteSpace: "pre-wrap" }} aria-live="polite">
        {reply}
      </p>
    </main>
  )
}
