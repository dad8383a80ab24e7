const crypto = require('crypto')
const fs = require('fs')
const zlib = require('zlib')

const sum = (bytes) => crypto.createHash('sha256').update(bytes).digest('hex')
const data = fs.readFileSync('data.bin')
const text = fs.readFileSync('words.txt')
console.log(sum(data), sum(text))

const packed = zlib.gzipSync(text, { level: 3 })
console.log(packed.length, zlib.gunzipSync(packed).equals(text))
const quality = { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } }
console.log(sum(zlib.brotliCompressSync(text.subarray(0, 2e6), quality)))

const buffer = Buffer.alloc(1 << 20, 'wherry')
for (let i = 1; i < 3000; i++) {
  data.copy(buffer, (i * 7) % 1000, i * 13, i * 13 + ((i * 37) % 9000))
  buffer.copyWithin(i, i * 3, i * 3 + ((i * 11) % 5000))
  buffer.fill(i, i * 50, i * 50 + (i % 300))
}
console.log(sum(buffer))

const lines = text.toString().split('\n').map((line, i) => ({ i, words: line.split(' ') }))
console.log(sum(JSON.stringify(lines)), JSON.parse(JSON.stringify(lines)).length)
console.log(sum(Buffer.concat(lines.slice(0, 30000).map((line) => Buffer.from(line.words.join('-'))))))
