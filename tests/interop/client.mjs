// A real Nest client for the interoperation script: runs inside the built peer's folder, whose packages it uses. Connects as such a
// client usually does, then sends what it is told on standard input and prints what comes back, an object a line.
import { createInterface } from 'node:readline'
import { Logger } from '@nestjs/common'
import { ClientProxyFactory, Transport } from '@nestjs/microservices'
import { firstValueFrom, timeout } from 'rxjs'

Logger.overrideLogger(['error', 'warn']) // standard output is for answers
const client = ClientProxyFactory.create({
  transport: Transport.RMQ,
  options: { urls: [process.env.AMQP_URL], queue: process.env.QUEUE, queueOptions: { durable: true } },
})
await client.connect()
console.log(JSON.stringify({ connected: process.env.QUEUE }))
for await (const line of createInterface({ input: process.stdin })) {
  const { event, data } = JSON.parse(line)
  try {
    console.log(JSON.stringify({ answer: await firstValueFrom(client.send(event, data).pipe(timeout(20_000))) }))
  } catch (error) {
    console.log(JSON.stringify({ threw: String(error?.message ?? error) }))
  }
}
await client.close()
