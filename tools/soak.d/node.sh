# idea: buffers, digests, compression, JSON
# needs: node=nodejs
node "$TRIALS/t.js"
